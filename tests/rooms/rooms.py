# SPDX-License-Identifier: MIT
"""Do sources include only headers of their own room and of rooms before it?

    python3 tests/rooms/rooms.py ROOM...

Rooms are folders below the working directory, in their order; `make lint` passes them from
the makefile. Of the rooms that doc/ARCHITECTURE.md lists, those that may not use anything else of ljspy include only
headers of their own. Every file in the same top-level folders must be in a room, and each header must have an
include guard of its own: who includes two with one guard would lose one.
"""

import pathlib
import re
import sys

SOURCES = (".c", ".h", ".inc", ".S")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
GUARD = re.compile(r"^#ifndef (\w+_H)\n#define \1$", re.MULTILINE)
# A row of the table of rooms.
ALONE = re.compile(r"^\| `([^`]+)/` \|.*\| anything else of ljspy \|$", re.MULTILINE)
ARCHITECTURE = pathlib.Path("doc/ARCHITECTURE.md")
FILES_MAX = 24
# The counterparts of one file for each machine count once.
MACHINE = re.compile(r"_(?:x86_64|arm64)(?=\.)")


def wrong_includes(room, path, order, alone):
    for included in INCLUDE.findall(path.read_text()):
        to = str(pathlib.PurePath(included).parent)
        if to in (".", room):
            continue
        if to not in order:
            yield f"{path}: {included} is in no room"
        elif order[to] > order[room]:
            yield f"{path}: {included} is in a later room"
        elif room in alone:
            yield f"{path}: {included} is in another room, and {room} may not use anything else of ljspy"


def faults(rooms):
    """The violations of the order of these rooms, one line each."""
    order = {room: place for place, room in enumerate(rooms)}
    alone = set(ALONE.findall(ARCHITECTURE.read_text()))
    names = {room: set() for room in rooms}
    guarded = {}
    for top in sorted({room.split("/")[0] for room in rooms}):
        for path in sorted(path for path in pathlib.Path(top).rglob("*") if path.is_file()):
            room = str(path.parent)
            if room not in order:
                yield f"{path}: the file is in no room"
                continue
            names[room].add(MACHINE.sub("", path.name))
            if path.suffix in SOURCES:
                yield from wrong_includes(room, path, order, alone)
            if path.suffix == ".h":
                guards = GUARD.findall(path.read_text())
                if not guards:
                    yield f"{path}: it has no include guard"
                for guard in guards:
                    other = guarded.setdefault(guard, path)
                    if other != path:
                        yield f"{path}: {other} has the include guard {guard}, too"
    for room in rooms:
        if not 0 < len(names[room]) <= FILES_MAX:
            yield f"{room}: {len(names[room])} files, 1 to {FILES_MAX} make a room"


def main(rooms):
    found = list(faults(rooms))
    for fault in found:
        print(fault, file=sys.stderr)
    return bool(found) or not rooms


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
