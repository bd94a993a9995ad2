# SPDX-License-Identifier: MIT
"""A target's waits end when and as they would without ljspy.

SAFETY_SECONDS says how long it naps (`make safety`)."""

import os
import pathlib
import signal

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

SECONDS = int(os.environ.get("SAFETY_SECONDS", 3))
NAPPER = ljspy.ROOT / "tests/safety/napper.lua"


def test_no_call_is_interrupted(runtime, tmp_path):
    """Short naps in each of the calls that return EINTR after a stop, and in others, with so
    many looks that stops often fall into a nap."""
    with ljspy.Target([ljspy.luajit(runtime), NAPPER, SECONDS], limit=ljspy.LIMIT_SECONDS + SECONDS) as target:
        target.wait_ready()
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=ljspy.RECORDING_SECONDS + SECONDS, rate=10000)
        ljspy.wait_traced(target.pid)
        target.write("\n")
        recording = recorder.finish()
        ends = {}
        while line := target.read_until(b"\n", at_end=""):
            name, *counts = line.split()
            ends[name] = dict(zip(("naps", "interrupted", "wrong", "early"), map(int, counts)))
        assert target.process.wait() == 0
    print(f"\n{sum(end['naps'] for end in ends.values())} naps, {recording.stats['samples']} samples:", ends)
    assert recording.samples and ends
    assert all(end.pop("naps") for end in ends.values())
    assert ends == {name: {"interrupted": 0, "wrong": 0, "early": 0} for name in ends}


THREADS = """
    ffi.cdef[[
        int pthread_create(unsigned long *thread, const void *attributes, void *start, void *argument);
        int pause(void);
    ]]
    for _ = 1, 12 do
        assert(ffi.C.pthread_create(ffi.new("unsigned long[1]"), nil, ffi.cast("void *", ffi.C.pause), nil) == 0)
    end
"""


@pytest.mark.parametrize("clock", ["cpu", "wall"])
def test_threads_that_sleep_are_not_traced(tmp_path, clock):
    """Their signals need not wait for ljspy, whatever clock asks about them."""
    with ljspy.busy(THREADS) as target:
        tasks = pathlib.Path(f"/proc/{target.pid}/task").iterdir()
        others = [task.name for task in tasks if task.name != str(target.pid)]
        # One that has not got a CPU yet would run once more.
        assert ljspy.wait_until(lambda: all(ljspy.status_field(task, "State").startswith("S") for task in others))
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=ljspy.RECORDING_SECONDS,
                                  options=["--clock", clock])
        ljspy.wait_traced(target.pid)
        before = ljspy.cpu_ns(target.pid)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(target.pid) - before > 500_000_000, seconds=ljspy.WORK_SECONDS)
        assert ljspy.status_field(target.pid, "TracerPid") != "0"
        assert len(others) == 12
        assert {ljspy.status_field(task, "TracerPid") for task in others} == {"0"}
        recorder.process.send_signal(signal.SIGINT)
        recording = recorder.finish()
    assert ljspy.weight_of(recording.samples, ljspy.has_frame("heavy")) > 0
