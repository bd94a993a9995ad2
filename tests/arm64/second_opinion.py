# SPDX-License-Identifier: MIT
"""A second opinion on native frames in the emulated arm64 machine, as tests/second-opinion has it on x86-64.

Without code that signs return addresses: bookworm's libunwind leaves the signatures on, and goes astray. Nine tenths of the
time of the compiled program are spent in code that is in no file."""

import re
import shutil
import sys

import machine

sys.path[:0] = [str(machine.ROOT / "tests/second-opinion")]

import test_second_opinion as second  # noqa: E402, pylint: disable=wrong-import-position

LOOKS = 100
LUAJIT = f"luajit-{machine.SUITE}"
# Name, command, the least share of looks with the same frames.
TARGETS = (
    ("interpreted", f"{LUAJIT} -joff -e '{second.LUA}'", 0.3),
    ("compiled", f"{LUAJIT} -e '{second.LUA}'", 0.01),
    ("called back", f"{LUAJIT} -e '{second.SORT}'", 0.3),
    ("asleep", f"{LUAJIT} /programs/parked.lua", 0.9),
)


def lay(root, build, sysroot):
    program = build / "tests/second-opinion/compare"
    shutil.copy(program, root / "bin")
    machine.lay_libraries(root, sysroot, [program])
    return commands()


def commands():
    yield "cd /"
    for name, command, _ in TARGETS:
        yield f"{command} >/dev/null 2>&1 & target=$!; sleep 1"
        yield f"compare $target $target {LOOKS} 2>&1 | sed 's/^/second {name}: /'; kill -9 $target"


def judge(said):
    """What is wrong."""
    for name, _, least_same in TARGETS:
        lines = re.findall(rf"(?m)^second {name}: (.*)$", said)
        try:
            total, same = second.assert_explained(lines, least_same)
            print(f"second opinion, {name}: {total} looks, {same} the same, none unexplained")
        except AssertionError as fault:
            yield f"second opinion, {name}: {str(fault)[:900]}"
