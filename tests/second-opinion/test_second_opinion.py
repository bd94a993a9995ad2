# SPDX-License-Identifier: MIT
"""A second opinion on native frames: libunwind-ptrace unwinds the same stopped thread.

Where the two part, both must have come to an address that is in no file: code that was made at run
time, or none at all, for the table of LuaJIT's interpreter does not know what its subroutines have
pushed. Tables end there, and libunwind guesses by the frame pointer. (Stacks that ljspy shows go by its
own rules for both.)"""

import re
import subprocess

import pytest

import ljspy

COMPARE = ljspy.LJSPY.parent / "tests/second-opinion/compare"
LOOKS = 150
LEAST_SAME = 0.9, 0.3  # without LuaJIT, with it

LUA = "local s = 0 while true do for i = 1, 1e3 do s = s + #tostring(i) % 7 end end"
SORT = "local t = {} for i = 1, 300 do t[i] = i * 7 % 13 end while true do table.sort(t, function(a, b) return a > b end) end"
PYTHON = "while True: sorted(range(1000), key=lambda value: -value)"
TARGETS = {
    "interpreted": lambda: [ljspy.luajit("luajit"), "-joff", "-e", LUA],
    "compiled": lambda: [ljspy.luajit("luajit"), "-e", LUA],
    "called back": lambda: [ljspy.luajit("luajit2"), "-e", SORT],
    "Python": lambda: ["/usr/bin/python3", "-c", PYTHON],
    "asleep": lambda: ["/bin/sleep", "60"],
}
OUTCOME = re.compile(r"(\d+) (same|(?:shorter|longer|different) after (\S+):.*)")


@pytest.mark.parametrize("name", TARGETS)
def test_same_frames(name):
    if not COMPARE.exists():
        pytest.skip(f"{COMPARE} is not built: make second-opinion")
    with ljspy.Target(TARGETS[name]()) as target:
        subprocess.run(["sleep", "0.5"], check=True)
        result = subprocess.run([COMPARE, str(target.pid), str(target.pid), str(LOOKS)],
                                capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    print(result.stdout, result.stderr)
    assert result.returncode == 0
    assert_explained(result.stdout.splitlines(), LEAST_SAME["luajit" in str(TARGETS[name]()[0])])


def assert_explained(lines, least_same):
    """Returns how many looks there were, and how many found the same frames."""
    outcomes = [OUTCOME.fullmatch(line) for line in lines]
    assert outcomes and all(outcomes), lines
    unexplained = [found[0] for found in outcomes if found[2] != "same" and found[3] != "nowhere"]
    assert not unexplained, unexplained
    same = sum(int(found[1]) for found in outcomes if found[2] == "same")
    total = sum(int(found[1]) for found in outcomes)
    assert same >= least_same * total, lines
    return total, same
