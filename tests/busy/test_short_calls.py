# SPDX-License-Identifier: MIT
"""A stop finds a thread where it was when the look was due, not at the end of its next system call."""

import contextlib
import math
import os

import pytest

import ljspy
from gaps import IS_URGENT

pytestmark = pytest.mark.usefixtures("built")

SHORT_CALLS = ljspy.ROOT / "tests/busy/short_calls.lua"
SECONDS = float(os.environ.get("BUSY_SECONDS", 3))
RATE = 299
SURE = 5  # standard errors
# Where others want the CPU now and then, some looks come from another CPU.
LEFT = 0.03
# Of the time, with the looks themselves: if the target waits for longer, its CPU is not its own.
WAITS = 0.08


def waited_ns(pid):
    return int(open(f"/proc/{pid}/schedstat", encoding="ascii").read().split()[1])


@pytest.mark.skipif("BUSY_SECONDS" not in os.environ, reason="`make busy` runs it: the target needs a CPU to itself")
@pytest.mark.skipif(not IS_URGENT, reason="ljspy may not be urgent here, so it looks from another CPU")
def test_short_calls_have_their_share(tmp_path):
    with ljspy.Target([ljspy.luajit("luajit"), SHORT_CALLS], cwd="/", limit=int(SECONDS) + 60) as target:
        os.sched_setaffinity(target.pid, {max(os.sched_getaffinity(0))})
        with contextlib.suppress(OSError):  # else it may have to share its CPU
            os.setpriority(os.PRIO_PROCESS, target.pid, -20)
        target.wait_ready()
        true = int(target.read_until(b"\n")) / 1e6
        waited = waited_ns(target.pid)
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=SECONDS, rate=RATE)
        stats = recorder.finish().stats
        waited = (waited_ns(target.pid) - waited) / 1e9 / SECONDS
    stacks = [line.rpartition(" ") for line in recorder.folded.read_text().splitlines()]
    total = sum(int(weight) for _, _, weight in stacks)
    calls = sum(int(weight) for stack, _, weight in stacks if any(frame.startswith("call ") for frame in stack.split(";")))
    seen = calls / total
    print(f"short calls: true {100 * true:.2f} %, seen {100 * seen:.2f} % of {stats['samples']} samples; "
          f"the target waited for its CPU for {100 * waited:.1f} % of the time")
    if waited > WAITS:
        pytest.skip("others use the target's CPU")
    assert stats["samples"] > RATE
    assert abs(seen - true) < SURE * math.sqrt(true * (1 - true) / stats["samples"]) + LEFT
