# SPDX-License-Identifier: MIT
"""LuaJIT compiles and flushes tens of thousands of traces."""

import re
import signal
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = ljspy.ROOT / "tests/compiled/flush.lua"
SETTLED_AFTER, TRACES = 20000, 60000
GROWTH_MAX_KIB = 2048  # 35 bytes for each of the traces
FRAME = re.compile(r"f(\d+):(\d+)$")


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])


def made(target):
    """How many functions the target has compiled, when it next says so."""
    return int(target.read_until(b"\n", seconds=ljspy.READY_SECONDS))


def test_flushed_traces_cost_nothing_and_lend_no_stack(runtime, tmp_path):
    recording = tmp_path / "flush.ljspy"
    command = [ljspy.LJSPY, "record", "-r", "500", "-o", recording, "-p"]
    with (
        ljspy.Target([ljspy.luajit(runtime), PROGRAM]).wait_ready() as target,
        subprocess.Popen([*command, str(target.pid)], stderr=subprocess.DEVNULL) as recorder,
    ):
        try:
            # Wait until ljspy writes, and then until its memory for these functions has settled.
            begin = made(target)
            while not recording.exists():
                begin = made(target)
            while made(target) < begin + SETTLED_AFTER:
                pass
            before = resident_kib(recorder.pid)
            while made(target) < begin + SETTLED_AFTER + TRACES:
                pass
            after = resident_kib(recorder.pid)
        finally:
            recorder.send_signal(signal.SIGINT)
        assert recorder.wait(ljspy.READY_SECONDS) == 0
    assert after - before < GROWTH_MAX_KIB
    seen = set()
    for line in ljspy.run("report", recording, "--lines", "-o", "-", "-f", "folded").stdout.splitlines():
        for frame in line.rpartition(" ")[0].split(";"):
            found = FRAME.search(frame)
            if found:
                number, at = map(int, found.groups())
                assert 10 * number < at <= 10 * number + 7, frame
                seen.add(number)
    assert len(seen) > 20
