# SPDX-License-Identifier: MIT
"""A disk that does not answer keeps ljspy from reading LuaJIT's code: whether a process runs LuaJIT is then not known,
and ljspy says so, goes on, and takes the process in once the disk answers."""

import contextlib
import os
import pathlib
import signal
import subprocess
import time

import pytest

import ljspy
from disk import Disk

pytestmark = pytest.mark.usefixtures("built")

SPINS = """
local function spin() for i = 1, 1e6 do end end
print("ready")
io.stdout:flush()
while true do spin() end
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "spins.lua"
    path.write_text(SPINS)
    return path


@pytest.fixture
def disk(tmp_path):
    with Disk(tmp_path, ljspy.luajit("luajit")) as disk:
        yield disk


@pytest.fixture
def unread(disk, script):
    with ljspy.Target([*disk.inside, disk.directory / "luajit", script]).wait_ready() as target:
        disk.hang("luajit", forgets=True)
        yield target
        # To end, the target may need pages from the disk.
        disk.server.process.kill()


@pytest.mark.parametrize("command", ["record", "dump", "traces", "heap", "check", "info"])
def test_it_is_not_known(command, unread):
    result = ljspy.run(command, "-p", unread.pid)
    assert result.returncode == ljspy.NOTHING_PROFILED, result.stderr
    assert "not known" in result.stderr
    assert "does not run LuaJIT" not in result.stderr
    assert "PUC" not in result.stderr


def test_it_is_read_later(disk, unread, tmp_path):
    other_script = tmp_path / "other.lua"
    other_script.write_text(SPINS.replace("spin", "turn"))
    with ljspy.Target([ljspy.luajit("luajit"), other_script]).wait_ready() as other:
        recorder = ljspy.Recorder(tmp_path, "-p", f"{other.pid},{unread.pid}", seconds=ljspy.RECORDING_SECONDS)
        ljspy.wait_traced(other.pid)
        time.sleep(1)
        assert ljspy.status_field(unread.pid, "TracerPid") == "0"
        disk.server.write("go on\n")
        ljspy.wait_traced(unread.pid)
        recorder.end_after(unread.pid, 1)
        recording = recorder.finish()
    assert ljspy.weight_of(recording.samples, ljspy.has_frame("turn"))
    assert ljspy.weight_of(recording.samples, ljspy.has_frame("spin"))


def test_of_found_ones_it_is_told_at_the_end(unread, script, tmp_path):
    """Once, and counted: what is found may be anything, so it is no failure."""
    with ljspy.Target([ljspy.luajit("luajit"), script]).wait_ready():
        result = ljspy.run("record", "--name", script, "-d", "1s", "-o", tmp_path / "out.svg")
    assert result.returncode == ljspy.OK, result.stderr
    told = [line for line in result.stderr.splitlines() if "not known" in line]
    assert told == [f"ljspy: Whether process {unread.pid} has run LuaJIT is not known: it could not be searched in time."]


FUTEX = {"x86_64": "202", "aarch64": "98"}[os.uname().machine]


def waits_for_disk(task):
    """A helper of ljspy's that does nothing waits for its next errand."""
    call = (task / "syscall").read_text().split()[0]
    return ljspy.status_field(task.relative_to("/proc"), "Name") == "ljspy-errand" and call not in (FUTEX, "running")


def process_that_waits(front):
    """Of ljspy's: one with a helper that waits for the disk."""
    processes = [front]
    for process in processes:
        with contextlib.suppress(*ljspy.GONE):
            for task in pathlib.Path(f"/proc/{process}/task").iterdir():
                if waits_for_disk(task):
                    return process
            processes += ljspy.children_of(process)
    return 0


def interrupted_in_a_search(arguments):
    """The exit status and the messages of ljspy, which gets SIGINT while it waits for the disk."""
    command = [ljspy.LJSPY, *arguments]
    process = subprocess.Popen(
        ["timeout", "60", *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    ljspy.wait_until(lambda: ljspy.children_of(process.pid))
    (front,) = ljspy.children_of(process.pid)
    ljspy.wait_until(lambda: process_that_waits(front), pause=0.001)
    os.kill(front, signal.SIGINT)
    shown, said = process.communicate()
    # What was not searched to its end has no verdict.
    assert "LuaJIT matches" not in said and "not known" not in said
    return process.returncode, shown, said


def test_ctrl_c_ends_a_search_before_a_command(unread, script, tmp_path):
    returncode, _, said = interrupted_in_a_search(["record", "--name", script, "-o", tmp_path / "x.svg"])
    assert returncode == -signal.SIGINT, said
    assert not (tmp_path / "x.svg").exists()


RECORDS = ["", "--alloc", "--coroutines", "--requests", "--blocked", "--every 1h"]


@pytest.mark.parametrize("command", [*(f"record {options}" for options in RECORDS), "check", "traces", "serve"])
def test_what_never_began_is_no_result(command, unread, tmp_path):
    """Where nothing to see is a result, too."""
    output = ["-o", tmp_path / "x"] if command.startswith("record") else []
    output += ["--listen", f"unix:{tmp_path}/socket"] if command == "serve" else []
    returncode, shown, said = interrupted_in_a_search([*command.split(), "-p", unread.pid, *output])
    assert "before it had begun" in said
    assert returncode == ljspy.NOTHING_PROFILED, said
    assert shown == ""
    assert "samples" not in said and "Wrote" not in said
    assert not (tmp_path / "x").is_file()
