"""Traces that come and go by the ten thousand."""

import re
import subprocess
import time

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = ljspy.ROOT / "tests/compiled/flush.lua"
GROWTH_MAX_KIB = 2048
FRAME = re.compile(r"f(\d+):(\d+)$")


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])


def test_flushed_traces_cost_nothing_and_lend_no_stack(runtime, tmp_path):
    recording = tmp_path / "flush.ljspy"
    with ljspy.Target([ljspy.luajit(runtime), PROGRAM]).wait_ready() as target:
        target.read_until(b"\n")
        command = [ljspy.LJSPY, "record", "-p", target.pid, "-d", "4s", "-r", "500", "-o", recording]
        recorder = subprocess.Popen([str(part) for part in command], stderr=subprocess.DEVNULL)
        time.sleep(1)
        begin = int(target.read_until(b"\n"))
        before = resident_kib(recorder.pid)
        # As long as ljspy records, and ten thousand traces at least.
        while recorder.poll() is None:
            end = int(target.read_until(b"\n"))
            after = resident_kib(recorder.pid) if recorder.poll() is None else after
    assert recorder.returncode == 0
    assert end - begin >= 10000
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
