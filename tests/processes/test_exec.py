# SPDX-License-Identifier: MIT
"""A process runs another program: each has its own CPU time, whichever thread calls execve(), and nobody waits with
one whose execve() has to wait."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess

import pytest

import ljspy
from disk import Disk

pytestmark = pytest.mark.usefixtures("built")

BEFORE_MS, AFTER_MS = 800, 500

SCRIPT = f"""
    local clock, begin = os.clock, os.clock()
    local function script_works()
        local n = 0
        while clock() - begin < {AFTER_MS / 1000} do for i = 1, 1e4 do n = n + i % 7 end end
        return n
    end
    local n = script_works()
    print("after " .. math.floor((clock() - begin) * 1000))
"""


@pytest.fixture(scope="module")
def execs(tmp_path_factory):
    program = tmp_path_factory.mktemp("execs") / "execs"
    source = pathlib.Path(__file__).parent / "execs.c"
    subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-pthread", source, "-o", program], check=True)
    return program


@pytest.mark.parametrize("thread", ["first", "second"])
def test_each_program_has_its_own_time(thread, execs, tmp_path):
    script = tmp_path / "script.lua"
    script.write_text(SCRIPT)
    command = [execs, thread, BEFORE_MS, ljspy.luajit("luajit"), script]
    # Each stop may cost it a wait for a CPU, where others want that.
    recording = ljspy.record(tmp_path, "--", *command, seconds=100, rate=199)
    said = recording.run.stdout
    before, after = (int(re.search(rf"^{word} (\d+)", said, re.MULTILINE)[1]) for word in ("before", "after"))
    of_script = ljspy.weight_of(recording.samples, ljspy.has_frame("script_works")) / 1000
    total = ljspy.weight_of(recording.samples) / 1000
    print(f"the script: {of_script:.0f} ms of {after}; all: {total:.0f} ms of {before + after}")
    assert 0.8 * after < of_script < 1.15 * after
    assert 0.85 * (before + after) < total < 1.15 * (before + after)


# Before the new program begins, the kernel closes the file, which waits for its disk. Meanwhile it shows nobody the
# process.
EXECS_WITH_A_FILE = """
    local ffi = require "ffi"
    ffi.cdef [[
        int open(const char *path, int flags); int execv(const char *path, const char *const *argv);
        unsigned alarm(unsigned seconds);
    ]]
    local O_CLOEXEC = 0x80000
    ffi.C.alarm(tonumber(arg[2]))
    assert(ffi.C.open(arg[1], O_CLOEXEC) >= 0)
    print("ready")
    io.stdout:flush()
    io.read()
    ffi.C.execv("/bin/sleep", ffi.new("const char *const [3]", { "sleep", arg[2] }))
"""
SPINS = """
    local ffi = require "ffi"
    ffi.cdef "unsigned alarm(unsigned seconds);"
    ffi.C.alarm(tonumber(arg[1]))
    local function spin() for i = 1, 1e6 do end end
    print("ready")
    io.stdout:flush()
    while true do spin() end
"""


class Siblings:
    """A shell with two children: one spins, and one is to run another program, with a file on a disk open."""

    def __init__(self, directory, disk):
        spins, execs = directory / "spins.lua", directory / "execs.lua"
        spins.write_text(SPINS)
        execs.write_text(EXECS_WITH_A_FILE)
        self.disk = disk
        script = 'luajit=$1 spins=$2 limit=$3; shift 3; "$luajit" "$spins" "$limit" & "$@" "$limit"; exit 0'
        argv = ["sh", "-c", script, "sh", ljspy.luajit("luajit"), spins, ljspy.LIMIT_SECONDS]
        argv += [*disk.inside, ljspy.luajit("luajit"), execs, disk.directory / "file"]
        self.shell = ljspy.Target(argv)
        for _ in range(2):
            self.shell.wait_ready()
        self.spinner, self.execer = ljspy.children_of(self.shell.pid)

    def begin_to_exec(self):
        self.disk.hang()
        self.shell.write("go\n")
        assert ljspy.wait_until(lambda: not pathlib.Path(f"/proc/{self.execer}/cmdline").read_bytes())

    def stop(self):
        self.disk.server.process.kill()  # the execve() cannot end before
        for pid in (self.spinner, self.execer):
            with contextlib.suppress(ProcessLookupError):  # it has a time limit
                os.kill(pid, signal.SIGKILL)
        self.shell.stop()


@pytest.fixture
def siblings(tmp_path):
    path = tmp_path / "file"
    path.write_text("a file")
    with Disk(tmp_path, path) as disk:
        found = Siblings(tmp_path, disk)
        yield found
        found.stop()


@pytest.mark.parametrize(("how", "when"), [
    ("by its id", "meanwhile"), ("by name", "before"), ("by name", "meanwhile"),
    ("as a descendant", "before"), ("as a descendant", "meanwhile"),
])
def test_nobody_waits_with_an_execve(how, when, siblings, tmp_path):
    spinner = siblings.spinner
    targets = {
        "by its id": ["-p", f"{spinner},{siblings.execer}"],
        "by name": ["--name", f"^{tmp_path}/"],
        "as a descendant": ["--tree", siblings.shell.pid],
    }
    if when == "before":
        siblings.begin_to_exec()
    recorder = ljspy.Recorder(tmp_path, *targets[how], seconds=ljspy.RECORDING_SECONDS)
    ljspy.wait_traced(spinner)
    if when == "meanwhile":
        siblings.begin_to_exec()
    before_ns = ljspy.cpu_ns(spinner)
    recorder.end_after(spinner, 1)
    of_spinner = (ljspy.cpu_ns(spinner) - before_ns) / 1e9
    recording = recorder.finish()
    seen = ljspy.weight_of(recording.samples, ljspy.has_frame("spin")) / 1e6
    print(f"spins for {of_spinner:.1f} s: {seen:.1f} s seen")
    assert seen > 0.8 * of_spinner


@pytest.mark.parametrize("command", [["dump"], ["info"], ["requests"], ["record", "-d", "1s"]])
def test_who_asks_for_a_process_in_an_execve_is_told(command, siblings, tmp_path):
    siblings.begin_to_exec()
    for target in ("-p", "--tree"):
        run = ljspy.run(*command, target, siblings.execer, cwd=tmp_path)
        assert run.returncode == 2
        assert f"Process {siblings.execer} is about to run another program" in run.stderr


def test_others_than_one_in_an_execve_are_shown(siblings):
    siblings.begin_to_exec()
    run = ljspy.run("dump", "-p", f"{siblings.execer},{siblings.spinner}")
    assert run.returncode == 1
    assert f"Process {siblings.execer} is about to run another program" in run.stderr
    assert "spin " in run.stdout
