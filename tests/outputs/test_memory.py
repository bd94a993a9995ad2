# SPDX-License-Identifier: MIT
"""The memory of a recording does not grow with the number of functions a program makes."""

import os
import re
import signal

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

# Makes new functions all the time, in stacks of new functions.
PROGRAM = """
    jit.off()
    local count = 0
    io.write("ready\\n") io.flush()
    while true do
        local callee
        for depth = 1, 10 do
            count = count + 1
            local source = "local callee = ... return function() local x = callee and callee() or 0 for i = 1, 300 do x = x + i end return x end"
            callee = loadstring(source, "@" .. ("x"):rep(900) .. "/function_" .. count .. ".lua")(callee)
        end
        local x = callee()
    end
"""

# Functions to see. Each has a chunk name of a kilobyte, and as much other data in ljspy.
WANTED = round(2500 * float(os.environ.get("BUSY_SECONDS", 8)))
# About 13 MB at the beginning, and room for all tables together.
LIMIT_KB = 45 << 10


def functions(recording):
    report = ljspy.run("report", recording, "-f", "folded", timeout=120)
    return len(set(re.findall(r"function_\d+", report.stdout)))


def test_functions_without_end(tmp_path):
    path = tmp_path / "x.ljspy"
    with ljspy.Target([ljspy.luajit("luajit"), "-e", PROGRAM], limit=300).wait_ready() as target:
        with ljspy.Target([ljspy.LJSPY, "record", "-r", "10000", "-o", path, "-p", target.pid], limit=280) as recorder:
            assert ljspy.wait_until(path.exists, seconds=30)
            assert ljspy.wait_until(lambda: functions(path) > WANTED, seconds=250, pause=2)
            most = int(ljspy.status_field(recorder.pid, "VmHWM"))
            recorder.process.send_signal(signal.SIGINT)
            assert recorder.process.wait(30) == ljspy.OK
    print(f"{functions(path)} functions seen: {most} kB at most")
    assert most < LIMIT_KB
