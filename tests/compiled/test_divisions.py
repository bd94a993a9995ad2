# SPDX-License-Identifier: MIT
"""What takes long in compiled code has its time, though the processor names the
instruction behind it when it is interrupted."""

import collections

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = ljspy.ROOT / "tests/compiled/divisions.lua"


def line_of(tag):
    return next(i for i, line in enumerate(PROGRAM.read_text().splitlines(), 1) if line.endswith(f"-- @{tag}"))


def test_divisions_have_the_time_that_they_take(runtime, tmp_path):
    with ljspy.Target([ljspy.luajit(runtime), PROGRAM]) as target:
        truth = float(target.read_until(b"ready\n", seconds=ljspy.READY_SECONDS).split()[0])
        samples = ljspy.record(tmp_path, "-p", target.pid, seconds=3, options=["--lines"]).samples
    leaves = collections.Counter()
    for sample in samples:
        leaves[sample.frames[-1]] += sample.weight
    total = sum(leaves.values())
    shares = {frame: weight / total for frame, weight in leaves.items()}
    print(f"truth {truth:.3f}", shares)
    lines = {line: sum(share for frame, share in shares.items()
                       if frame.startswith("divide ") and frame.endswith(f"divisions.lua:{line}"))
             for line in range(line_of("first"), line_of("last") + 1)}
    assert sum(lines.values()) > truth - 0.08
    # Each takes as long as the others, but where the program waits for a CPU it is seen more often.
    assert max(lines.values()) < truth / 2, lines
    assert sum(share > truth / len(lines) / 5 for share in lines.values()) > len(lines) / 2, lines
