# SPDX-License-Identifier: MIT
"""Which sources need a second look since a commit?

    python3 tests/lint/changed.py COMMIT FILE...

Prints those of the files whose code differs from the commit's, or that include, themselves or by what they include, a
header whose code does: comments are no code, nor is the layout. Prints all of them if there is no such commit, as in a
shallow clone.
`make lint analysed_since=COMMIT` asks it.
"""

import pathlib
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# Literals are matched, too: they may contain what looks like a comment.
COMMENT_OR_LITERAL = re.compile(r"/\*.*?\*/|//[^\n]*" r'|"(?:\\.|[^"\\])*"' r"|'(?:\\.|[^'\\])*'", re.DOTALL)
WORD = re.compile(r'"(?:\\.|[^"\\])*"' r"|'(?:\\.|[^'\\])*'" r"|\w+|[^\w\s]")
# Comments that analysers obey.
ORDER = re.compile("NOLINT|cppcheck-suppress")


def without_comment(found):
    return " " if found[0].startswith("/") else found[0]


def words(line):
    return [" ".join(line.split())] if line.lstrip().startswith("#") else WORD.findall(line)


def code(text):
    """The words of the code without comments, each directive as one. All lines if one of them is an order: which line it
    is for depends on where it stands."""
    if ORDER.search(text):
        return text.splitlines()
    lines = COMMENT_OR_LITERAL.sub(without_comment, text.replace("\\\n", " ")).splitlines()
    return [word for line in lines for word in words(line)]


def decoded(data):
    """As text, of which bytes that are not UTF-8 stay a part."""
    return data.decode("utf-8", "surrogateescape")


def has_other_code(file, commit):
    """Whether its code differs from that of the commit, which may not have it."""
    before = subprocess.run(["git", "show", f"{commit}:./{file}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    path = pathlib.Path(file)
    if before.returncode or not path.exists():
        return True
    return code(decoded(before.stdout)) != code(decoded(path.read_bytes()))


def changed_since(commit):
    """The paths of C files whose code differs from the commit's, and of other files that differ, or None."""
    result = subprocess.run(
        ["git", "diff", "--name-only", "--relative", commit, "--"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    if result.returncode:
        return None
    paths = result.stdout.decode().splitlines()
    return {path for path in paths if not path.endswith((".c", ".h")) or has_other_code(path, commit)}


def included_by(path):
    """What a file may include itself, from its own folder or named from the root; nothing if there is no such file."""
    if not path.exists():
        return set()
    names = INCLUDE.findall(decoded(path.read_bytes()))
    return {place / name for name in names for place in (path.parent, pathlib.Path())}


def is_touched(path, changed, includes):
    """Whether a source has changed, or one of the files that it includes in the end."""
    seen, left = set(), {pathlib.Path(path)}
    while left:
        seen |= left
        for one in left - includes.keys():
            includes[one] = included_by(one)
        left = set().union(*(includes[one] for one in left)) - seen
    return not changed.isdisjoint(map(str, seen))


def main():
    commit, *paths = sys.argv[1:]
    changed, includes = changed_since(commit), {}
    print(*(path for path in paths if changed is None or is_touched(path, changed, includes)))


if __name__ == "__main__":
    main()
