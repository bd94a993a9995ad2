#!/usr/bin/env python3
"""Every source file says under which licence it is, in a line of its own.

    spdx.py [FOLDER]          list the files of a repository that do not; 1 if there is one
    spdx.py --add [FOLDER]    add the line to these

The line comes first, behind a line that has to be the first one. In programs whose
lines tests count it comes last.
"""

import pathlib
import subprocess
import sys

TAG = "SPDX-License-Identifier: MIT"

C, HASH, SLASHES, DASHES, ROFF = f"/* {TAG} */", f"# {TAG}", f"// {TAG}", f"-- {TAG}", f'.\\" {TAG}'
COMMENTS = {".c": C, ".h": C, ".inc": C, ".S": C, ".css": C, ".js": SLASHES, ".proto": SLASHES, ".php": SLASHES, ".lua": DASHES, ".1": ROFF,
            ".py": HASH, ".sh": HASH, ".bash": HASH, ".fish": HASH, ".yaml": HASH, ".ini": HASH, ".in": HASH}
LAST = {".lua", ".in"}
FIRST_LINES = ("#!", "#compdef", "<?php")
# What is no source, or has a licence file for all of it beside it.
EXEMPT = {"LICENSE", ".gitignore", ".editorconfig", ".clang-format"}
EXEMPT_FOLDERS = ("tests/fuzz/inputs/", "tests/unit/kept/", "tests/fuzz/images/", "doc/", "contrib/debian/")
EXEMPT_SUFFIXES = {".md", ".ljspy", ".svg", ".png", ".heap"}


def sources(root):
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root,
                           capture_output=True, text=True, check=True).stdout.splitlines()
    for name in names:
        path = root / name
        if path.is_file() and name not in EXEMPT and path.suffix not in EXEMPT_SUFFIXES and \
                not name.startswith(EXEMPT_FOLDERS):
            yield path


def add(path):
    # Scripts and makefiles have no suffix, or one that says nothing.
    line = COMMENTS.get(path.suffix, HASH) + "\n"
    text = path.read_text()
    if path.suffix in LAST:
        path.write_text(text + line)
        return
    first, newline, rest = text.partition("\n")
    if first.startswith(FIRST_LINES):
        path.write_text(first + newline + line + rest)
    else:
        path.write_text(line + text)


def main(*arguments):
    folders = [argument for argument in arguments if argument != "--add"]
    root = pathlib.Path(folders[0]) if folders else pathlib.Path(__file__).resolve().parents[2]
    lacking = [path for path in sources(root) if TAG not in path.read_text()]
    if "--add" in arguments:
        for path in lacking:
            add(path)
        return 0
    for path in lacking:
        print(f"{path.relative_to(root)}: no {TAG}; `make spdx` adds it", file=sys.stderr)
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
