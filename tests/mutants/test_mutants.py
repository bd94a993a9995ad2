# SPDX-License-Identifier: MIT
"""What make mutants takes for a fault that tests notice, and what it keeps in its tables."""

import re

import pytest

import mutants

PASSES, FAILS, HANGS = "exit 0", "exit 1", "sleep 60"
FAILS_ONCE = '[ -e "$0.ran" ] && exit 0; : > "$0.ran"; exit 1'
HANGS_ONCE = '[ -e "$0.ran" ] && exit 0; : > "$0.ran"; sleep 60'
TABLES = """before
<!-- mutants: written by make mutants -->
| rooms | faults tried | noticed by unit tests | of all faults there | of the others, by end-to-end tests | by both, of all |
|---|---|---|---|---|---|
| `memory/` | 12 | 67 % | 67 % |  |  |
| `unwind/` | 24 | 75 % | 71 % | 1 of 4 | 78 % |

| room | possible faults | tried | noticed by unit tests | not, though one runs the line | in lines that none runs | did not compile | noticed |
|---|---|---|---|---|---|---|---|
| `memory/` | 1,068 | 12 | 8 | 4 | 0 | 0 | 67 % |
| `unwind/elf/` | 892 | 12 | 10 | 1 | 1 | 0 | 83 % |
| `unwind/symbols/` | 2,768 | 12 | 8 | 4 | 0 | 1 | 67 % |
<!-- end of mutants -->
after
| `output/views/` | 1 | 1 | 1 | 0 | 0 | 0 | 100 % |
"""


@pytest.mark.parametrize("with_fault, without, noticed", [
    (FAILS, PASSES, True),
    (HANGS, PASSES, True),
    (PASSES, PASSES, False),
    (FAILS, FAILS, False),
    (HANGS, HANGS, False),
    (FAILS, HANGS, False),
    (FAILS_ONCE, PASSES, False),
    (HANGS_ONCE, PASSES, False),
])
def test_what_a_busy_machine_does_to_a_test_is_no_noticed_fault(tmp_path, with_fault, without, noticed):
    programs = [tmp_path / "with_fault", tmp_path / "without"]
    for program, script in zip(programs, (with_fault, without)):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    assert mutants.because_of_fault(*programs, 5, tmp_path) is noticed


def test_rows_of_rooms_that_are_not_tried_stay():
    kept = mutants.read_tables(TABLES)
    assert set(kept["rooms"]) == {"memory", "unwind/elf", "unwind/symbols"}
    written = re.search(r"(?s)-->\n(.*?)\n<!--", TABLES)[1]
    assert "\n\n".join(mutants.tables(kept)) == written


def test_a_room_that_is_tried_again_drops_what_end_to_end_tests_noticed_in_its_group():
    for room, left in (("memory", {"unwind"}), ("unwind/elf", set())):
        kept = mutants.read_tables(TABLES)
        row = kept["rooms"][room] | {"killed": 1}
        mutants.keep_room(kept, room, row)
        assert kept["rooms"][room] == row and set(kept["ends"]) == left


def test_rooms_that_are_no_more_have_no_rows():
    kept = mutants.read_tables(TABLES.replace("unwind/symbols", "unwind/gone"))
    assert set(kept["rooms"]) == {"memory", "unwind/elf"}
