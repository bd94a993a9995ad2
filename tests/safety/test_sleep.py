"""What a target waits for ends when and as it would have ended."""

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

NAPPER = ljspy.ROOT / "tests/safety/napper.lua"


def test_no_call_is_interrupted(runtime, tmp_path):
    """Short naps in each of the calls that return EINTR once a thread is stopped, and others,
    looked at so often that many a stop falls into one."""
    with ljspy.Target([ljspy.luajit(runtime), NAPPER, 3]) as target:
        target.wait_ready()
        recording = ljspy.record(tmp_path, "-p", target.pid, seconds=20, rate=10000)
        ends = {}
        while line := target.read_until(b"\n", at_end=""):
            name, *counts = line.split()
            ends[name] = dict(zip(("naps", "interrupted", "wrong", "early"), map(int, counts)))
    assert recording.samples
    assert all(end.pop("naps") for end in ends.values())
    assert ends == {name: {"interrupted": 0, "wrong": 0, "early": 0} for name in ends}
