# SPDX-License-Identifier: MIT
"""However a recording ends, ljspy first lets go of its target, and then writes the samples."""

import fcntl
import os
import pathlib
import pty
import signal
import subprocess
import termios

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

LONG = ["-d", f"{ljspy.RECORDING_SECONDS}s", "-r", str(ljspy.HIGH_RATE)]


def is_free(pid):
    return ljspy.status_field(pid, "TracerPid") == "0" and ljspy.status_field(pid, "State") == "R"


def run_for(pid, cpu_seconds):
    before = ljspy.cpu_ns(pid)
    assert ljspy.wait_until(lambda: ljspy.cpu_ns(pid) > before + cpu_seconds * 1e9, seconds=ljspy.WORK_SECONDS)


@pytest.fixture
def busy():
    with ljspy.program("luajit", "shares") as target:
        yield target


def test_closed_terminal(busy, tmp_path):
    def take_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    master, terminal = pty.openpty()
    output = tmp_path / "profile.folded"
    arguments = [ljspy.LJSPY, "record", *LONG, "-o", output, "-p", str(busy.pid)]
    recorder = subprocess.Popen(
        arguments, stdin=terminal, stdout=terminal, stderr=terminal, preexec_fn=take_terminal
    )
    os.close(terminal)
    ljspy.wait_traced(busy.pid)
    run_for(busy.pid, 0.2)
    os.close(master)
    recorder.wait(timeout=60)
    assert ljspy.wait_until(lambda: is_free(busy.pid))
    assert stacks.parse_folded(output.read_text())


@pytest.mark.parametrize("output_format", ["ljspy", "folded"])
def test_closed_pipe(busy, output_format):
    """Whether ljspy writes to it all the time or at the end. The user knows that the reader has left."""
    arguments = [ljspy.LJSPY, "record", *LONG, "-f", output_format, "-o", "-", "-p", str(busy.pid)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
        ljspy.wait_traced(busy.pid)
        run_for(busy.pid, 0.2)
        recorder.stdout.close()
        run_for(busy.pid, 0.2)
        recorder.send_signal(signal.SIGINT)
        errors = recorder.stderr.read().decode()
    assert recorder.returncode == ljspy.WITH_ERRORS
    assert "samples" in errors
    assert "Broken pipe" not in errors
    assert ljspy.wait_until(lambda: is_free(busy.pid))


def test_target_is_let_go_before_anything_is_written(busy):
    """The reader does not read."""
    arguments = [ljspy.LJSPY, "record", *LONG, "-f", "json", "-o", "-", "-p", str(busy.pid)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as recorder:
        fcntl.fcntl(recorder.stdout, fcntl.F_SETPIPE_SZ, 4096)
        ljspy.wait_traced(busy.pid)
        run_for(busy.pid, 0.5)
        recorder.send_signal(signal.SIGINT)
        assert ljspy.wait_until(lambda: is_free(busy.pid))
        assert recorder.poll() is None
        assert recorder.stdout.read()


def test_killed_target_that_nobody_waits_for(busy, tmp_path):
    """As when the kernel kills because memory is out; the target is then a zombie."""
    recorder = ljspy.Recorder(tmp_path, "-p", busy.pid, seconds=ljspy.RECORDING_SECONDS)
    ljspy.wait_traced(busy.pid)
    run_for(busy.pid, 0.2)
    os.kill(busy.pid, signal.SIGKILL)
    recording = recorder.finish()
    assert ljspy.status_field(busy.pid, "State") == "Z"
    assert recording.samples
    assert "ended early" in recording.run.stderr


def memory_group():
    """The directory of this process's memory cgroup, and the name of its limit file."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return pathlib.Path(f"/sys/fs/cgroup/memory{path}"), "memory.limit_in_bytes"
    return pathlib.Path(f"/sys/fs/cgroup{path}"), "memory.max"


@pytest.fixture
def little_memory():
    """A cgroup with too little memory for a program that grows."""
    parent, limit = memory_group()
    group = parent / f"ljspy-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as reason:
        pytest.skip(f"no memory cgroup can be made: {reason}")
    try:
        if not (group / limit).exists():
            pytest.skip("the memory cgroup limits no memory")
        (group / limit).write_text(str(64 << 20))
        yield group
    finally:
        ljspy.wait_until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def test_target_out_of_memory(little_memory, tmp_path):
    source = """
        local function heavy() local sum = 0 for i = 1, 1e5 do sum = sum + i % 7 end return sum end
        io.write("ready\\n") io.flush()
        io.read()
        while os.clock() < 1 do local sum = heavy() end
        local kept = {}
        while true do kept[#kept + 1] = ("x"):rep(1e6) .. #kept end
    """
    with ljspy.Target([ljspy.luajit("luajit"), "-e", source]).wait_ready() as target:
        (little_memory / "cgroup.procs").write_text(str(target.pid))
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=ljspy.RECORDING_SECONDS)
        ljspy.wait_traced(target.pid)
        target.write("\n")
        recording = recorder.finish()
        assert target.process.wait() == -signal.SIGKILL
    assert ljspy.weight_of(recording.samples, ljspy.has_frame("heavy")) > 0
    assert "ended early" in recording.run.stderr


def test_target_that_becomes_another_program(tmp_path):
    first = """
        ffi.cdef("int execv(const char *, char *const *);")
        local argv = ffi.new("const char *[4]", {arg[-1] or "luajit", "-e", "%s"})
        local finish = os.clock() + 1.5
        local function before() local sum = 0 for i = 1, 1e5 do sum = sum + i % 7 end return sum end
        io.write("ready\\n") io.flush()
        while os.clock() < finish do local sum = before() end
        ffi.C.execv(arg[-1] or "", ffi.cast("char *const *", argv))
    """
    second = "local function after() return #tostring(os.clock()) end while true do local n = after() end"
    source = first.replace("%s", second)
    program = tmp_path / "first.lua"
    program.write_text('local ffi = require("ffi")\n' + source)
    with ljspy.Target([ljspy.luajit("luajit"), program]).wait_ready() as target:
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=ljspy.RECORDING_SECONDS)
        # execv() keeps the process's CPU clock.
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(target.pid) > 2.5e9, seconds=ljspy.WORK_SECONDS)
        recorder.process.send_signal(signal.SIGINT)
        samples = recorder.finish().samples
    seen = {frame.split(" ")[0] for sample in samples for frame in sample.frames}
    assert {"before", "after"} <= seen


def test_storm_of_threads(tmp_path):
    """A thousand threads a second, if the machine can; each ends at once."""
    code = """
        ffi.cdef[[
            int pthread_create(void *, void *, void *, void *); int pthread_detach(long);
            void free(void *); int usleep(unsigned int);
        ]]
        local thread = ffi.new("long[1]")
        local function start()
            if ffi.C.pthread_create(thread, nil, ffi.cast("void *", ffi.C.free), nil) == 0 then
                ffi.C.pthread_detach(thread[0])
            end
        end
        local function heavy() local sum = 0 for i = 1, 3e5 do sum = sum + i % 7 end return sum end
        io.write("ready\\n") io.flush()
        while true do
            start()
            ffi.C.usleep(500)
            local sum = heavy()
        end
    """
    with ljspy.busy(code) as target:
        recording = ljspy.record(tmp_path, "-p", target.pid, seconds=2)
        assert ljspy.wait_until(lambda: ljspy.status_field(target.pid, "TracerPid") == "0")
        before = ljspy.cpu_ns(target.pid)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(target.pid) > before)
    assert ljspy.weight_of(recording.samples, ljspy.has_frame("heavy")) > 0


def test_the_end_of_a_command_does_not_end_who_started_it(tmp_path):
    """
    The shell leads a session that nobody outside is tied to, and has a stopped job: were the command
    a tie, the kernel would send SIGHUP to both at its end.
    """
    output = tmp_path / "profile.folded"
    script = f"""
        sleep 60 & kill -STOP $!
        {ljspy.LJSPY} record -o {output} -- {ljspy.luajit("luajit")} -e 'repeat until os.clock() > 0.3'
        echo status $?
        kill -KILL $!
    """
    done = subprocess.run(
        ["bash", "-c", script], start_new_session=True, timeout=60, stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.stdout == "status 0\n"
    assert done.returncode == 0
    assert stacks.parse_folded(output.read_text())
