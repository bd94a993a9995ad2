# SPDX-License-Identifier: MIT
"""Which sources need a second look since a commit?

    python3 tests/lint/changed.py COMMIT FILE...

Prints those of the files that differ from the commit, or that include a header which does. Prints
all of them if there is no such commit, as in a shallow clone. `make lint analysed_since=COMMIT` asks it.
"""

import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def changed_since(commit):
    """The paths of files that differ from the commit, or None."""
    result = subprocess.run(
        ["git", "diff", "--name-only", "--relative", commit, "--"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    return set(result.stdout.decode().splitlines()) if result.returncode == 0 else None


def is_touched(path, changed):
    with open(path, encoding="utf-8") as source:
        return path in changed or not changed.isdisjoint(INCLUDE.findall(source.read()))


def main():
    commit, *paths = sys.argv[1:]
    changed = changed_since(commit)
    print(*(path for path in paths if changed is None or is_touched(path, changed)))


if __name__ == "__main__":
    main()
