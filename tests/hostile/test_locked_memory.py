# SPDX-License-Identifier: MIT
"""The kernel holds the lock of a process's memory: whoever reads its arguments, maps or memory waits for ever, and
no signal but SIGKILL ends that. ljspy looks at the others without it."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

import disk
import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = pathlib.Path(__file__).resolve().parent / "locked_memory.lua"
WORK = """
local function heavy() local sum = 0 for i = 1, 1e6 do sum = sum + i % 7 end return sum end
while true do heavy() end
"""


def state_of(pid):
    return ljspy.status_field(pid, "State").split()[0]


class Locked(ljspy.Target):
    """Its memory's lock is to be had until lock()."""

    def __init__(self, hanging, program):
        super().__init__([*hanging.inside, program, PROGRAM, hanging.directory / "page"])
        self.hanging = hanging
        self.wait_ready()

    def lock(self):
        self.hanging.hang()
        self.write("lock\n")
        ljspy.wait_until(lambda: state_of(self.pid) == "D")

    def stop(self):
        self.hanging.server.write("go on\n")  # until then, not even SIGKILL ends it
        super().stop()


@pytest.fixture
def program(tmp_path):
    """A LuaJIT by a name that no other process has."""
    return shutil.copy(ljspy.luajit("luajit"), tmp_path / f"jit{tmp_path.name[-8:]}")


@pytest.fixture
def target(tmp_path, program):
    page = tmp_path / "page"
    page.write_bytes(bytes(4096))
    with disk.Disk(tmp_path, page) as hanging, Locked(hanging, program) as target:
        yield target


@pytest.fixture
def other(tmp_path, program):
    script = tmp_path / "worker.lua"
    script.write_text(WORK)
    with ljspy.Target([program, script]) as other:
        yield other


@pytest.mark.parametrize("command", ["dump", "info"])
def test_others_of_its_tree_are_looked_at_and_it_is_named(target, other, command):
    target.lock()
    run = ljspy.run(command, "--tree", os.getpid())
    assert run.returncode == ljspy.WITH_ERRORS, run.stderr
    assert f"rocess {other.pid}" in run.stdout
    assert run.stderr.count(f"waiting for memory of process {target.pid} for seconds") == 1, run.stderr
    assert state_of(target.pid) == "D"


def tells_unknown(said, target, pattern):
    """Where tests run at once, there are several such processes, of which one is named."""
    found = re.findall(rf'Whether process (\d+) matches "{re.escape(str(pattern))}" is not known', said)
    return len(found) == 1 and (int(found[0]) == target.pid or "So it is with" in said)


@pytest.mark.parametrize("command", ["record -d 1s -f text -o -", "dump"])
def test_others_of_its_name_are_looked_at_and_it_is_named(target, other, program, command):
    target.lock()
    run = ljspy.run(*command.split(), "--name", f"^{pathlib.Path(program).name}$")
    assert ljspy.runs_free(other.pid)
    assert run.returncode == ljspy.WITH_ERRORS, run.stderr
    assert "heavy" in run.stdout
    assert run.stderr.count(f"waiting for memory of process {target.pid} for seconds") == 1, run.stderr
    assert state_of(target.pid) == "D"


@pytest.mark.parametrize("command", ["record -d 1s -f text -o -", "dump"])
def test_one_that_may_match_is_told(target, other, command, tmp_path):
    target.lock()
    run = ljspy.run(*command.split(), "--name", tmp_path / "worker.lua")
    assert run.returncode == ljspy.OK, run.stderr
    assert "heavy" in run.stdout
    assert tells_unknown(run.stderr, target, tmp_path / "worker.lua"), run.stderr


def recording(name, *options):
    argv = [ljspy.LJSPY, "record", "-f", "text", "-o", "-", *options, "--name", name]
    return subprocess.Popen(list(map(str, argv)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def helper_waits(engine):
    threads = [status.read_text() for status in pathlib.Path(f"/proc/{engine}/task").glob("*/status")]
    return any("Name:\tljspy-errand" in text and "State:\tD" in text for text in threads)


def test_one_that_is_locked_while_others_are_recorded_is_told(target, other, tmp_path):
    with recording(tmp_path / "worker.lua") as run:
        try:
            ljspy.wait_traced(other.pid)
            target.lock()
            ljspy.wait_until(lambda: helper_waits(ljspy.tracer(other.pid)))
            before = ljspy.cpu_ns(other.pid)  # it waits for half a second at most
            ljspy.wait_until(lambda: ljspy.cpu_ns(other.pid) > before + 1e9)
            assert run.poll() is None
            run.send_signal(signal.SIGINT)
            out, said = run.communicate(timeout=60)
        finally:
            run.kill()
    assert run.returncode == ljspy.OK, said
    assert "heavy" in out
    assert re.search(rf"Whether (process {target.pid} has|\d+ processes have) run LuaJIT", said), said
    assert ljspy.runs_free(other.pid)


def test_who_names_it_is_told_why_there_is_nothing(target):
    target.lock()
    run = ljspy.run("record", "-d", "1s", "-o", "/dev/null", "-p", target.pid)
    assert run.returncode == ljspy.NOTHING_PROFILED, run.stderr
    assert run.stderr.count(f"waiting for memory of process {target.pid} for seconds") == 1, run.stderr


def test_who_names_it_among_others_gets_those(target, other):
    target.lock()
    run = ljspy.run("record", "-d", "1s", "-f", "text", "-o", "-", "-p", f"{other.pid},{target.pid}")
    assert run.returncode == ljspy.WITH_ERRORS, run.stderr
    assert "heavy" in run.stdout
    assert run.stderr.count(f"waiting for memory of process {target.pid} for seconds") == 1, run.stderr
