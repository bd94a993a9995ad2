# SPDX-License-Identifier: MIT
"""--no-stop: ljspy stops and traces no thread, and marks what it cannot know."""

import errno
import re
import signal
import subprocess
import time

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

NO_STOP = ["--no-stop"]
NOT_STOPPED, MOVED_ON = "[lost: not stopped]", "[lost: may have moved on from here]"
PROGRAMS = {p.name: p for p in stacks.all_programs()}


def known(sample):
    """The sample without the frames marked as old."""
    frames = sample.frames
    return sample._replace(frames=frames[: frames.index(MOVED_ON) + 1] if MOVED_ON in frames else frames)


@pytest.mark.parametrize("name", ["coroutines", "traces"])
def test_no_stack_is_wrong(runtime, jit, name, tmp_path):
    with ljspy.program(runtime, name, jit) as target:
        recording = ljspy.record(tmp_path, "-p", target.pid, seconds=1, options=NO_STOP)
    wrong = [";".join(s.frames) for s in recording.samples if PROGRAMS[name].judge(known(s)) == "wrong"]
    assert recording.samples and not wrong, wrong


def test_what_a_trace_runs_is_found_and_its_leaf_marked(runtime, tmp_path):
    with ljspy.program(runtime, "shares", "on") as target:
        samples = ljspy.record(tmp_path, "-p", target.pid, seconds=1, options=NO_STOP).samples
    in_traces = [s for s in samples if s.frames[-1] == NOT_STOPPED and len(s.frames) > 1]
    assert any(s.frames[-2].startswith("heavy ") for s in in_traces)


def test_nobody_is_traced(tmp_path):
    with ljspy.program("luajit", "calls") as target:
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=ljspy.RECORDING_SECONDS, options=NO_STOP)
        enough, traced = ljspy.cpu_ns(target.pid) + 1e9, False
        while recorder.process.poll() is None and ljspy.cpu_ns(target.pid) < enough:
            traced |= ljspy.status_field(target.pid, "TracerPid") != "0"
            time.sleep(0.001)
        recorder.process.send_signal(signal.SIGINT)
        recording = recorder.finish()
    assert recording.samples and not traced
    assert recording.stats["pause_us"]["max"] == 0


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS], ids=errno.errorcode.get)
def test_no_ptrace_is_needed(error, tmp_path):
    through = [ljspy.helper("refused"), "ptrace", str(error)]
    with ljspy.program("luajit", "calls") as target:
        recording = ljspy.record(tmp_path, "-p", target.pid, options=NO_STOP, through=through)
    assert recording.samples


def test_a_process_that_another_one_traces_is_recorded(tmp_path):
    (tmp_path / "other").mkdir()
    with ljspy.program("luajit", "calls") as target:
        other = ljspy.Recorder(tmp_path / "other", "-p", target.pid, seconds=ljspy.RECORDING_SECONDS)
        ljspy.wait_traced(target.pid)
        assert ljspy.record(tmp_path, "-p", target.pid, seconds=1, options=NO_STOP).samples
        assert ljspy.is_traced(target.pid)
        other.process.send_signal(signal.SIGINT)
        assert other.finish().samples


def test_lua_is_found_in_one_of_several_threads(tmp_path):
    code = """
        ffi.cdef("int pthread_create(void *, void *, void *(*)(void *), void *); void *pause(void *);")
        assert(ffi.C.pthread_create(ffi.new("long[1]"), nil, ffi.C.pause, nil) == 0)
    """
    with ljspy.busy(code) as target:
        assert ljspy.status_field(target.pid, "Threads") == "2"
        samples = ljspy.record(tmp_path, "-p", target.pid, seconds=1, options=NO_STOP).samples
    assert any(map(ljspy.has_frame("heavy"), samples))


def test_the_end_is_told_and_what_was_seen_is_kept(tmp_path):
    recording = tmp_path / "x.ljspy"
    with ljspy.program("luajit", "shares") as target:
        command = [ljspy.LJSPY, "record", "-d", "50s", "-o", recording, "-p", str(target.pid), *NO_STOP]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as recorder:
            assert ljspy.wait_until(recording.exists)
            first = recording.stat().st_size
            assert ljspy.wait_until(lambda: recording.stat().st_size > first)
            target.process.kill()  # with no wait() for it: it stays a zombie
            _, errors = recorder.communicate(timeout=60)
    assert recorder.returncode == ljspy.OK
    assert "ended early" in errors
    assert "heavy" in ljspy.run("report", recording, "-f", "folded").stdout


def test_a_command_cannot_be_started():
    result = ljspy.run("record", "--no-stop", "--", "true")
    assert result.returncode == ljspy.USAGE
    assert re.search("--no-stop", result.stderr)
