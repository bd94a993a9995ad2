# SPDX-License-Identifier: MIT
"""Slow instructions in compiled code get their own time, although an interrupted
processor reports the instruction behind them."""

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
    # Every line takes the same time, but ljspy sees the program more often where it waits for a CPU.
    assert max(lines.values()) < truth / 2, lines
    assert sum(share > truth / len(lines) / 5 for share in lines.values()) > len(lines) / 2, lines
