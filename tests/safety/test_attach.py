# SPDX-License-Identifier: MIT
"""Without PTRACE_SEIZE ljspy refuses and names the price of going on; with
--allow-attach it uses PTRACE_ATTACH. A filter on ljspy's own system calls stands
in for a kernel that lacks PTRACE_SEIZE."""

import errno
import pathlib
import signal

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

ALLOWED = ["--allow-attach"]


@pytest.fixture
def without_seize():
    return [ljspy.helper("refused"), "seize", str(errno.EIO)]


def state(target):
    return ljspy.status_field(target.pid, "State")


def is_running(target):
    before = ljspy.cpu_ns(target.pid)
    return ljspy.wait_until(
        lambda: ljspy.status_field(target.pid, "TracerPid") == "0"
        and ljspy.cpu_ns(target.pid) > before and state(target) == "R"
    )


def test_it_is_refused_with_the_price(without_seize):
    with ljspy.program("luajit", "main") as target:
        arguments = ["record", "-d", "1s", "-f", "folded", "-o", "-", "-p", target.pid]
        result = ljspy.run(*arguments, through=without_seize)
        assert is_running(target)
    assert result.returncode == ljspy.NOTHING_PROFILED
    for word in ("PTRACE_SEIZE", "--allow-attach", "SIGSTOP", "--no-stop"):
        assert word in result.stderr


def test_it_is_recorded_if_allowed(without_seize, jit, tmp_path):
    (program,) = [p for p in stacks.all_programs() if p.name == "coroutines"]
    with ljspy.program("luajit", "coroutines", jit) as target:
        recording = ljspy.record(tmp_path, "-p", target.pid, options=ALLOWED, through=without_seize)
        assert is_running(target)
    verdicts = [program.judge(sample) for sample in recording.samples]
    assert verdicts and "wrong" not in verdicts


def test_several_threads_and_a_sleeper(without_seize, tmp_path):
    code = """
        ffi.cdef("int pthread_create(void *, void *, void *(*)(void *), void *); void *pause(void *);")
        assert(ffi.C.pthread_create(ffi.new("long[1]"), nil, ffi.C.pause, nil) == 0)
    """
    with ljspy.busy(code) as target:
        recording = ljspy.record(tmp_path, "-p", target.pid, options=ALLOWED, through=without_seize)
        assert is_running(target)
        states = [
            (task / "stat").read_text().rpartition(") ")[2][0]
            for task in pathlib.Path(f"/proc/{target.pid}/task").iterdir()
        ]
    assert recording.samples
    assert sorted(states) == ["R", "S"]


def test_a_command_is_started(without_seize, tmp_path):
    argv = [ljspy.luajit("luajit"), "-e", "for i = 1, 1e9 do end print('done')"]
    recording = ljspy.record(tmp_path, "--", *argv, options=ALLOWED, seconds=ljspy.RECORDING_SECONDS, through=without_seize)
    assert recording.samples
    assert recording.run.stdout == "done\n"


def test_job_control_goes_on(without_seize, tmp_path):
    with ljspy.program("luajit", "main") as target:
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=ljspy.RECORDING_SECONDS, options=ALLOWED,
                                  through=without_seize)
        ljspy.wait_traced(target.pid)
        before = ljspy.cpu_ns(target.pid)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(target.pid) > before + 2e8)
        target.process.send_signal(signal.SIGSTOP)
        assert ljspy.wait_until(lambda: ljspy.stands_still(target.pid))
        stopped = ljspy.cpu_ns(target.pid)
        target.process.send_signal(signal.SIGCONT)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(target.pid) > stopped)
        recorder.process.send_signal(signal.SIGINT)
        assert recorder.finish().samples
        assert is_running(target)
