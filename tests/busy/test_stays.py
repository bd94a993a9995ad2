# SPDX-License-Identifier: MIT
"""A look leaves a thread on the CPU that it ran on, where its data are in the caches."""

import os
import re
import time

import pytest

import ljspy
from gaps import IS_URGENT

pytestmark = pytest.mark.usefixtures("built")

SHORT_CALLS = ljspy.ROOT / "tests/busy/short_calls.lua"
SECONDS = float(os.environ.get("BUSY_SECONDS", 3))
RATE = 199
# Of the looks; where ljspy let the thread go from its CPU, it moved at 90 % of them.
MOVED = 0.2


def moves(pid):
    text = open(f"/proc/{pid}/sched", encoding="ascii").read()
    return int(re.search(r"nr_migrations\s*:\s*(\d+)", text)[1])


def moves_in(pid, seconds):
    begin = moves(pid)
    time.sleep(seconds)
    return moves(pid) - begin


@pytest.mark.skipif("BUSY_SECONDS" not in os.environ, reason="`make busy` runs it: the target needs a CPU to itself")
@pytest.mark.skipif(not IS_URGENT, reason="ljspy may not be urgent here, so it looks from another CPU")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one CPU")
@pytest.mark.skipif(not os.path.exists("/proc/self/sched"), reason="the kernel does not count moves")
def test_a_look_does_not_move_a_thread(tmp_path):
    with ljspy.Target([ljspy.luajit("luajit"), SHORT_CALLS], cwd="/", limit=int(SECONDS) + 60).wait_ready() as target:
        alone = moves_in(target.pid, SECONDS)
        begin = moves(target.pid)
        stats = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=SECONDS, rate=RATE).finish().stats
        moved = moves(target.pid) - begin
    print(f"moves to another CPU: {alone} alone, {moved} with {stats['samples']} samples")
    if alone > MOVED * stats["samples"]:
        pytest.skip("others use the target's CPU")
    assert stats["samples"] > RATE
    assert moved < MOVED * stats["samples"]
