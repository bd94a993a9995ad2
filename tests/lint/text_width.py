#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No line of a C comment or of a document's text is wider than code may be: clang-format leaves comments as
they are, and nothing lays out documents.

    text_width.py [FOLDER]    list such lines of a repository's sources, headers and documents; 1 if there is one
"""

import pathlib
import subprocess
import sys

from changed import COMMENT_OR_LITERAL, decoded

WIDTH_MAX = 110  # with tabs of eight, as in .clang-format


def files(root):
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.c", "*.h", "*.md"]
    names = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in names if (root / name).is_file()]


def wide_comment_lines(text):
    """The numbers of too wide lines that hold a comment or a part of one."""
    lines, wide = text.split("\n"), set()
    for found in COMMENT_OR_LITERAL.finditer(text):
        if found[0].startswith("/"):
            first = text.count("\n", 0, found.start())
            wide.update(number for number in range(first, first + found[0].count("\n") + 1)
                        if len(lines[number].expandtabs(8)) > WIDTH_MAX)
    return [number + 1 for number in sorted(wide)]


def wide_prose_lines(text):
    """The same of a document; examples, tables, and what cannot be broken may be wider."""
    return [number for number, line in enumerate(text.split("\n"), 1)
            if len(line) > WIDTH_MAX and not line.startswith(("    ", "|", "[!["))]


def main(folder=None):
    root = pathlib.Path(folder) if folder else pathlib.Path(__file__).resolve().parents[2]
    places = []
    for name in files(root):
        wide = wide_prose_lines if name.endswith(".md") else wide_comment_lines
        places += [f"{name}:{number}" for number in wide(decoded((root / name).read_bytes()))]
    for place in places:
        print(f"{place}: a comment or text is wider than {WIDTH_MAX} columns", file=sys.stderr)
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
