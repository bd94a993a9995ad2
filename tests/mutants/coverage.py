# SPDX-License-Identifier: MIT
"""make coverage: how much of the code of each room the unit tests run.

    coverage.py BUILD DIRECTORY DOCUMENT ROOM...

BUILD is made with VARIANT=coverage. DOCUMENT has a table to write, or is empty.
"""

import collections
import pathlib
import sys

import gcov

sys.path.insert(0, str(gcov.ROOT / "tests"))
import written


def percent(counts):
    return f"{100 * sum(map(bool, counts)) / len(counts):.0f} %" if counts else ""


def main():
    build, directory, document, *rooms = sys.argv[1:]
    measured = gcov.measure(build, directory)
    lines, branches = collections.Counter(), collections.Counter()
    for files in measured.values():
        for path, (file_lines, file_branches) in files.items():
            room = gcov.room_of(path, rooms)
            if room:
                lines.update({(room, path, line): count for line, count in file_lines.items()})
                branches.update({(room, path, *branch): count for branch, count in file_branches.items()})
    rows = [f"| `{room}/` | {sum(key[0] == room for key in lines):,} "
            f"| {percent([count for key, count in lines.items() if key[0] == room])} "
            f"| {percent([count for key, count in branches.items() if key[0] == room])} |"
            for room in rooms if any(key[0] == room for key in lines)]
    table = "\n".join(["| room | lines of code | run | branches taken |", "|---|---|---|---|", *rows,
                       f"| all | {len(lines):,} | {percent(list(lines.values()))} | {percent(list(branches.values()))} |"])
    print(table)
    written.write(pathlib.Path(document) if document else None, "coverage", table)
    sys.exit(not measured)


main()
