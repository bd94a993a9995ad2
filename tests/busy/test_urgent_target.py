# SPDX-License-Identifier: MIT
"""A thread of real-time priority that never sleeps keeps its CPU from all that are less urgent, ljspy included. ljspy
must not wait for that CPU: what it traces on others would stand still."""

import contextlib
import os

import pytest

import gaps
import ljspy

pytestmark = pytest.mark.usefixtures("built")

SECONDS, LIMIT = 3, 90
PRIORITY = 50


@pytest.mark.skipif(not gaps.IS_URGENT, reason="no thread may be of real-time priority here")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="the other target needs a CPU")
def test_others_are_not_held_while_it_runs(tmp_path):
    cpus = sorted(os.sched_getaffinity(0))[:2]
    with contextlib.ExitStack() as stack:
        urgent = stack.enter_context(ljspy.busy(limit=LIMIT))
        other = stack.enter_context(gaps.Gaps(tmp_path, limit=LIMIT))
        for target, cpu in zip((urgent, other), cpus):
            os.sched_setaffinity(target.pid, {cpu})
        os.sched_setscheduler(urgent.pid, os.SCHED_FIFO, os.sched_param(PRIORITY))
        # Where ljspy leaves the CPU of the other target, there is only that of the urgent one.
        through = ["taskset", "-c", ",".join(map(str, cpus))]
        other.take()
        recording = ljspy.record(tmp_path, "-p", f"{urgent.pid},{other.pid}", seconds=SECONDS, rate=99, through=through)
        held_ms = other.take()
        assert urgent.process.poll() is None and other.process.poll() is None, "it has waited for the end of one"
    print(f"held for {held_ms:.1f} ms, {recording.stats['samples']} samples")
    assert recording.stats["samples"] > 10
    assert held_ms < SECONDS * 1000 / 2
