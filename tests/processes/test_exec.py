# SPDX-License-Identifier: MIT
"""A process runs another program: each has its own CPU time, whichever thread calls execve(), and nobody waits with
one whose execve() has to wait."""

import os
import pathlib
import re
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
    ffi.cdef "int open(const char *path, int flags); int execv(const char *path, const char *const *argv);"
    local O_CLOEXEC = 0x80000
    assert(ffi.C.open(arg[1], O_CLOEXEC) >= 0)
    print("ready")
    io.stdout:flush()
    io.read()
    ffi.C.execv("/bin/sleep", ffi.new("const char *const [3]", { "sleep", "60" }))
"""
SPINS = "local function spin() for i = 1, 1e6 do end end while true do spin() end"


@pytest.fixture
def file_on_disk(tmp_path):
    path = tmp_path / "file"
    path.write_text("a file")
    with Disk(tmp_path, path) as disk:
        yield disk


@pytest.fixture
def spinner(tmp_path):
    script = tmp_path / "spins.lua"
    script.write_text(SPINS)
    with ljspy.Target([ljspy.luajit("luajit"), script]) as target:
        yield target


@pytest.fixture
def execer(file_on_disk, tmp_path):
    script = tmp_path / "execs.lua"
    script.write_text(EXECS_WITH_A_FILE)
    argv = [*file_on_disk.inside, ljspy.luajit("luajit"), script, file_on_disk.directory / "file"]
    with ljspy.Target(argv) as target:
        yield target.wait_ready()
        file_on_disk.server.process.kill()  # it could not end before


def begin_to_exec(disk, execer):
    disk.hang()
    execer.write("go\n")
    assert ljspy.wait_until(lambda: not pathlib.Path(f"/proc/{execer.pid}/cmdline").read_bytes())


@pytest.mark.parametrize(("how", "when"), [
    ("by its id", "meanwhile"), ("by name", "before"), ("by name", "meanwhile"),
    ("as a descendant", "before"), ("as a descendant", "meanwhile"),
])
def test_nobody_waits_with_an_execve(how, when, file_on_disk, execer, spinner, tmp_path):
    targets = {
        "by its id": ["-p", f"{spinner.pid},{execer.pid}"],
        "by name": ["--name", f"^{tmp_path}/"],
        "as a descendant": ["--tree", os.getpid()],
    }
    if when == "before":
        begin_to_exec(file_on_disk, execer)
    recorder = ljspy.Recorder(tmp_path, *targets[how], seconds=60)
    ljspy.wait_traced(spinner.pid)
    if when == "meanwhile":
        begin_to_exec(file_on_disk, execer)
    before_ns = ljspy.cpu_ns(spinner.pid)
    recorder.end_after(spinner.pid, 1)
    of_spinner = (ljspy.cpu_ns(spinner.pid) - before_ns) / 1e9
    recording = recorder.finish()
    seen = ljspy.weight_of(recording.samples, ljspy.has_frame("spin")) / 1e6
    print(f"spins for {of_spinner:.1f} s: {seen:.1f} s seen")
    assert seen > 0.8 * of_spinner


@pytest.mark.parametrize("command", [["dump"], ["info"], ["requests"], ["record", "-d", "1s"]])
def test_who_asks_for_a_process_in_an_execve_is_told(command, file_on_disk, execer, tmp_path):
    begin_to_exec(file_on_disk, execer)
    for target in ("-p", "--tree"):
        run = ljspy.run(*command, target, execer.pid, cwd=tmp_path)
        assert run.returncode == 2
        assert f"Process {execer.pid} is about to run another program" in run.stderr


def test_others_than_one_in_an_execve_are_shown(file_on_disk, execer, spinner):
    begin_to_exec(file_on_disk, execer)
    run = ljspy.run("dump", "-p", f"{execer.pid},{spinner.pid}")
    assert run.returncode == 1
    assert f"Process {execer.pid} is about to run another program" in run.stderr
    assert "spin " in run.stdout
