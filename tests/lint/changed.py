# SPDX-License-Identifier: MIT
"""Which sources need a second look since a commit?

    python3 tests/lint/changed.py COMMIT FILE...

Prints those of the files that differ from the commit, or that include a header whose code does: many include a header
of which only comments have changed. Prints all of them if there is no such commit, as in a shallow clone.
`make lint analysed_since=COMMIT` asks it.
"""

import pathlib
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# Literals are matched, too: they may contain what looks like a comment.
COMMENT_OR_LITERAL = re.compile(r"/\*.*?\*/|//[^\n]*" r'|"(?:\\.|[^"\\])*"' r"|'(?:\\.|[^'\\])*'", re.DOTALL)
# Comments that analysers obey.
ORDER = re.compile("NOLINT|cppcheck-suppress")


def without_comment(found):
    is_comment = found[0].startswith("/") and not ORDER.search(found[0])
    return " " if is_comment else found[0]


def code(text):
    """The lines of code, with neither comments nor indentation."""
    lines = (line.strip() for line in COMMENT_OR_LITERAL.sub(without_comment, text).splitlines())
    return [line for line in lines if line]


def has_other_code(header, commit):
    """Whether its code differs from that of the commit, which may not have it."""
    before = subprocess.run(["git", "show", f"{commit}:./{header}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    path = pathlib.Path(header)
    if before.returncode or not path.exists():
        return True
    return code(before.stdout.decode()) != code(path.read_text(encoding="utf-8"))


def changed_since(commit):
    """The paths of files that differ from the commit, of headers by their code, or None."""
    result = subprocess.run(
        ["git", "diff", "--name-only", "--relative", commit, "--"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    if result.returncode:
        return None
    paths = result.stdout.decode().splitlines()
    return {path for path in paths if not path.endswith(".h") or has_other_code(path, commit)}


def is_touched(path, changed):
    with open(path, encoding="utf-8") as source:
        return path in changed or not changed.isdisjoint(INCLUDE.findall(source.read()))


def main():
    commit, *paths = sys.argv[1:]
    changed = changed_since(commit)
    print(*(path for path in paths if changed is None or is_touched(path, changed)))


if __name__ == "__main__":
    main()
