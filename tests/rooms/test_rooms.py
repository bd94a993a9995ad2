# SPDX-License-Identifier: MIT
"""The check of includes in `make lint` finds violations."""

import os
import subprocess
import sys

import ljspy
import pytest

SCRIPT = ljspy.ROOT / "tests/rooms/rooms.py"
ROOMS = ["ground", "house/first", "house/second", "house/third"]


def header(guard, text=""):
    return f"#ifndef {guard}\n#define {guard}\n{text}#endif\n"


FILES = {
    "ground/stone.h": header("STONE_H"),
    "house/first/door.h": header("DOOR_H", '#include "ground/stone.h"\n'),
    "house/first/door.c": '#include "house/first/door.h"\n\n#include <stdio.h>\n',
    "house/second/window.c": '#include "house/first/door.h"\n#include "pane.inc"\n',
    "house/third/attic.c": '#include "house/third/attic.h"\n#include "beam.inc"\n',
    "house/third/attic.h": header("ATTIC_H"),
    "doc/ARCHITECTURE.md": "| `ground/` | What lies below? | air |\n"
                           "| `house/third/` | What is stored? | anything else of ljspy |\n",
}


def check(directory, changes):
    for name, text in {**FILES, **changes}.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return subprocess.run([sys.executable, SCRIPT, *ROOMS], cwd=directory, capture_output=True, text=True)


def test_what_is_in_order_passes(tmp_path):
    done = check(tmp_path, {})
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("changes, fault", [
    ({"house/first/door.c": '# include "house/second/window.h"\n'},
     "house/first/door.c: house/second/window.h is in a later room"),
    ({"ground/stone.h": header("STONE_H", '#include "cellar/box.h"\n')}, "ground/stone.h: cellar/box.h is in no room"),
    ({"house/third/attic.c": '#include "ground/stone.h"\n'},
     "house/third/attic.c: ground/stone.h is in another room, and house/third may not use anything else of ljspy"),
    ({"house/roof.c": ""}, "house/roof.c: the file is in no room"),
    ({f"ground/{i}.c": "" for i in range(24)}, "ground: 25 files, 1 to 24 make a room"),
    ({"ground/stone.h": "#define STONE_H\n"}, "ground/stone.h: it has no include guard"),
    ({"house/second/stone.h": header("STONE_H")},
     "house/second/stone.h: ground/stone.h has the include guard STONE_H, too"),
])
def test_what_is_not_fails(tmp_path, changes, fault):
    done = check(tmp_path, changes)
    assert (done.returncode, done.stderr.splitlines()) == (1, [fault])


def test_the_makefile_names_the_rooms(tmp_path):
    """The check uses the list of rooms that the makefile builds."""
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    done = subprocess.run(["make", "-s", "includes"], cwd=ljspy.ROOT, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
