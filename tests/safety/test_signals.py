# SPDX-License-Identifier: MIT
"""Signals for a target arrive once and in order while it is recorded."""

import subprocess
import time

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

QUEUED = 3000
HERE = ljspy.ROOT / "tests/safety"
SOURCE = """
    local ffi = require("ffi")
    ffi.cdef("void signals_begin(); bool signals_work(); void signals_print();")
    local signals = ffi.load(arg[1])
    local function heavy() local sum = 0 for i = 1, 1e5 do sum = sum + i % 7 end return sum end
    signals.signals_begin()
    print("ready") io.flush()
    while signals.signals_work() do heavy() end
    signals.signals_print()
"""

# Python has no sigqueue().
SENDER = """
    local ffi = require("ffi")
    ffi.cdef("int sigqueue(int, int, intptr_t); int usleep(unsigned int);")
    local pid, SIGRTMIN = tonumber(arg[1]), 34
    local function send(value)
        while ffi.C.sigqueue(pid, SIGRTMIN, value) ~= 0 do ffi.C.usleep(1000) end
    end
    for i = 0, tonumber(arg[2]) - 1 do
        send(i)
        if i % 4 == 0 then ffi.C.usleep(1000) end
    end
    send(-1)
"""


def script(path, source):
    path.write_text(source)
    return path


def test_storms_of_signals(runtime, tmp_path):
    """Signals of a timer, each millisecond; of children that end, one after the other; and queued ones."""
    library = tmp_path / "signals.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, HERE / "signals.c"], check=True)
    program, sender = script(tmp_path / "program.lua", SOURCE), script(tmp_path / "sender.lua", SENDER)
    # Target's limit is an alarm, but this program uses alarms itself.
    argv = ["prlimit", "--cpu=60", ljspy.luajit(runtime), program, library]
    begin = time.monotonic()
    with ljspy.Target(argv).wait_ready() as target:
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=ljspy.RECORDING_SECONDS)
        ljspy.wait_traced(target.pid)
        subprocess.run([ljspy.luajit(runtime), sender, str(target.pid), str(QUEUED)], check=True, timeout=ljspy.WORK_SECONDS)
        received, disordered, alarms, started, children = map(int, target.read_until(b"\n").split())
        recording = recorder.finish()
    assert recording.samples
    assert (received, disordered) == (QUEUED, 0)
    assert 0 < alarms <= (time.monotonic() - begin) * 1000
    assert started == children > 0
