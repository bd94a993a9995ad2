# SPDX-License-Identifier: MIT
"""A target's waits end when and as they would without ljspy.

SAFETY_SECONDS says how long it naps (`make safety`)."""

import os

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

SECONDS = int(os.environ.get("SAFETY_SECONDS", 3))
NAPPER = ljspy.ROOT / "tests/safety/napper.lua"


def test_no_call_is_interrupted(runtime, tmp_path):
    """Short naps in each of the calls that return EINTR after a stop, and in others, with so
    many looks that stops often fall into a nap."""
    with ljspy.Target([ljspy.luajit(runtime), NAPPER, SECONDS], limit=60 + SECONDS) as target:
        target.wait_ready()
        recording = ljspy.record(tmp_path, "-p", target.pid, seconds=20 + SECONDS, rate=10000)
        ends = {}
        while line := target.read_until(b"\n", at_end=""):
            name, *counts = line.split()
            ends[name] = dict(zip(("naps", "interrupted", "wrong", "early"), map(int, counts)))
        assert target.process.wait() == 0
    print(f"\n{sum(end['naps'] for end in ends.values())} naps, {recording.stats['samples']} samples:", ends)
    assert recording.samples and ends
    assert all(end.pop("naps") for end in ends.values())
    assert ends == {name: {"interrupted": 0, "wrong": 0, "early": 0} for name in ends}
