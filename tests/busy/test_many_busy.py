# SPDX-License-Identifier: MIT
"""Many processes that all want to run: each has its samples, and none is held while ljspy works on others."""

import contextlib
import os
import signal

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

FOR_EACH_CPU = 12
RATE = 99
ENOUGH_NS = 5e9  # of CPU time, in all
# A hold may wait for another thread's stop, for as long as that waits for its turn on a CPU.
TURNS_HELD = 3
CPUS = len(os.sched_getaffinity(0))


def waits(pid):
    """How long it has waited for a CPU, in ms, and how often it got one: /proc/PID/schedstat."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        _, waited_ns, turns = map(int, file.read().split())
    return waited_ns / 1e6, turns


@pytest.mark.skipif(os.geteuid() != 0, reason="other users' ljspy may not take a CPU before others")
def test_many_busy_processes_are_sampled_and_not_held_for_each_other(tmp_path):
    with contextlib.ExitStack() as stack:
        targets = [
            stack.enter_context(ljspy.Target([ljspy.luajit("luajit"), "-joff", "-e", "while true do end"]))
            for _ in range(FOR_EACH_CPU * CPUS)
        ]
        def cpu_ns():
            return sum(ljspy.cpu_ns(target.pid) for target in targets)

        pids = ",".join(str(target.pid) for target in targets)
        recorder = ljspy.Recorder(tmp_path, "-p", pids, seconds=ljspy.RECORDING_SECONDS, rate=RATE)
        # ljspy waits for a CPU as they do until it has found LuaJIT in all of them.
        assert ljspy.wait_until(lambda: all(ljspy.is_traced(target.pid) for target in targets), ljspy.WORK_SECONDS)
        before, enough_ns = [waits(target.pid) for target in targets], cpu_ns() + ENOUGH_NS
        assert ljspy.wait_until(lambda: cpu_ns() > enough_ns, ljspy.WORK_SECONDS)
        recorder.process.send_signal(signal.SIGINT)
        stats = recorder.finish().stats
        after = [waits(target.pid) for target in targets]
    waited_ms = sum(a[0] - b[0] for a, b in zip(after, before))
    turns = sum(a[1] - b[1] for a, b in zip(after, before))
    periods = stats["rate_hz"]["asked"] * stats["target_cpu_ms"] / 1e3
    print(f"{len(targets)} processes: {stats['samples']} samples in {periods:.0f} periods, longest hold "
          f"{stats['pause_us']['max'] / 1e3:.1f} ms, {waited_ms / turns:.1f} ms from one turn on a CPU to the next")
    assert stats["samples"] > periods / 2
    assert stats["pause_us"]["max"] / 1e3 < TURNS_HELD * waited_ms / turns
