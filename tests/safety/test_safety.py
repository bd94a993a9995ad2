# SPDX-License-Identifier: MIT
"""Looks do the target no harm."""

import hashlib
import os
import pathlib
import re
import signal
import subprocess

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")


def state(target):
    return ljspy.status_field(target.pid, "State")


def is_running(target):
    """Whether the target uses CPU time, untraced."""
    before = ljspy.cpu_ns(target.pid)
    return (
        ljspy.wait_until(lambda: ljspy.status_field(target.pid, "TracerPid") == "0")
        and ljspy.wait_until(lambda: ljspy.cpu_ns(target.pid) > before and state(target) == "R")
    )


def test_target_runs_on_after_a_recording(runtime, jit, tmp_path):
    with ljspy.program(runtime, "traces", jit) as target:
        ljspy.record(tmp_path, "-p", target.pid, seconds=1)
        assert is_running(target)


def test_results_are_the_same_while_recorded(runtime, jit, tmp_path):
    """A program of fixed work, interrupted as often as possible."""
    source = """
        local digest = 7
        for i = 1, ... do digest = (digest * 31 + #tostring(i % 1000)) % 2147483647 end
        print(digest, collectgarbage("count") > 0)
    """
    program = tmp_path / "digest.lua"
    program.write_text(source)
    argv = [ljspy.luajit(runtime), f"-j{jit}", program, "1e7"]
    alone = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=ljspy.WORK_SECONDS).stdout
    recorded = ljspy.run("record", "-r", 1000, "-f", "folded", "-o", tmp_path / "x.folded", "--", *argv,
                         timeout=ljspy.WORK_SECONDS)
    assert recorded.returncode == ljspy.OK, recorded.stderr
    assert recorded.stdout == alone


def digest(pid, wanted):
    """A digest of every mapping whose line in maps matches WANTED."""
    found = hashlib.sha256()
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            if not re.search(wanted, line):
                continue
            start, end = (int(address, 16) for address in line.split()[0].split("-"))
            memory.seek(start)
            found.update(f"{start:x} ".encode() + memory.read(end - start))
    return found.hexdigest()


def test_code_in_memory_is_untouched(runtime, tmp_path):
    code = r"r-x\S* \S+ \S+ \d+ +/"
    with ljspy.program(runtime, "traces") as target:
        before = digest(target.pid, code)
        ljspy.record(tmp_path, "-p", target.pid, seconds=1)
        assert digest(target.pid, code) == before


def test_memory_is_untouched(runtime, tmp_path):
    """A compiled loop without a body writes nothing at all. The kernel, which writes a
    thread's CPU to its memory, does not either on one CPU."""
    argv = ["taskset", "-c", min(os.sched_getaffinity(0)), ljspy.luajit(runtime)]
    writable = r"^\S+ .w"
    with ljspy.Target([*argv, "-e", "print('ready') io.flush() while true do end"]) as target:
        target.wait_ready()
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(target.pid) > 5e8, seconds=ljspy.WORK_SECONDS)
        before = digest(target.pid, writable)
        samples = 0
        while samples < 1000:
            samples += ljspy.record(tmp_path, "-p", target.pid, seconds=1, rate=10000).stats["samples"]
        assert digest(target.pid, writable) == before
        assert is_running(target)


def test_stopped_target_stays_stopped(tmp_path):
    with ljspy.program("luajit", "main") as target:
        target.process.send_signal(signal.SIGSTOP)
        assert ljspy.wait_until(lambda: state(target) == "T")
        result = ljspy.run("record", "-p", target.pid, "-d", "1s", "-o", tmp_path / "stopped.svg")
        assert result.returncode == ljspy.NOTHING_PROFILED and "There is no sample" in result.stderr
        assert state(target) == "T"
        target.process.send_signal(signal.SIGCONT)
        assert is_running(target)


def test_target_can_be_stopped_and_continued_meanwhile(tmp_path):
    with ljspy.program("luajit", "main") as target:
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=ljspy.RECORDING_SECONDS)
        ljspy.wait_traced(target.pid)
        target.process.send_signal(signal.SIGSTOP)
        assert ljspy.wait_until(lambda: ljspy.stands_still(target.pid))
        target.process.send_signal(signal.SIGCONT)
        recorder.end_after(target.pid, 0.2)
        assert recorder.finish().samples
        assert is_running(target)


def test_two_at_once_are_told_apart(tmp_path):
    """The second ljspy fails and names the first; the first goes on."""
    with ljspy.program("luajit", "main") as target:
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=ljspy.RECORDING_SECONDS)
        ljspy.wait_traced(target.pid)
        second = ljspy.run("record", "-d", "1s", "-f", "folded", "-o", "-", "-p", target.pid)
        assert second.returncode == ljspy.NOTHING_PROFILED
        assert str(recorder.process.pid) in second.stderr
        before = ljspy.cpu_ns(target.pid)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(target.pid) > before + 1e8)
        recorder.process.send_signal(signal.SIGINT)
        assert recorder.finish().samples


def as_nobody(argv, **options):
    return subprocess.Popen(argv, **ljspy.as_user(ljspy.NOBODY), **options)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be someone else")
def test_no_privilege_is_needed_for_ones_own_process(runtime):
    argv = [ljspy.luajit(runtime), "shares.lua", "on", "50"]
    with (
        ljspy.directory_of(ljspy.NOBODY) as directory,
        ljspy.Target(argv, cwd=stacks.PROGRAMS, user=ljspy.NOBODY).wait_ready() as target,
    ):
        assert ljspy.record(directory, "-p", target.pid, seconds=1, user=ljspy.NOBODY).samples


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be someone else")
def test_process_of_another_user_is_refused_with_the_reason():
    with ljspy.program("luajit", "main") as target:
        arguments = ["record", "-d", "1s", "-f", "folded", "-o", "-", "-p", str(target.pid)]
        with as_nobody([ljspy.LJSPY, *arguments], stderr=subprocess.PIPE, text=True) as recorder:
            message = recorder.stderr.read()
    assert recorder.returncode == ljspy.NOTHING_PROFILED
    assert "user" in message
    assert len(message.splitlines()) <= 2
