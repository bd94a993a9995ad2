# SPDX-License-Identifier: MIT
"""A command that ljspy starts looks to ljspy's caller as it does without ljspy."""

import json
import os
import select
import signal
import subprocess
import sys
import time

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

LUAJIT = ljspy.luajit("luajit")
WORK = "local finish = os.clock() + 0.4 while os.clock() < finish do end"


def run(tmp_path, *command, options=(), **others):
    return ljspy.run("record", "-o", tmp_path / "x.svg", "--stats", tmp_path / "s.json", *options, "--", *command, **others)


def command_of(tmp_path):
    return json.loads((tmp_path / "s.json").read_text())["command"]


@pytest.mark.parametrize("status", [0, 1, 2, 3, 64, 255])
def test_exit_status(tmp_path, status):
    result = run(tmp_path, LUAJIT, "-e", f"{WORK} os.exit({status})")
    assert result.returncode == status, result.stderr
    assert "Wrote" in result.stderr
    assert command_of(tmp_path) == {"exit_status": status, "signal": None}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV], ids=lambda s: s.name)
def test_death_by_signal(tmp_path, number):
    kill = f"require('ffi').cdef('int kill(int, int); int getpid(void);') local C = require('ffi').C C.kill(C.getpid(), {number.value})"
    result = run(tmp_path, LUAJIT, "-e", f"{WORK} {kill} while true do end")
    assert result.returncode == 128 + number
    assert command_of(tmp_path) == {"exit_status": None, "signal": number.value}


def test_command_that_outlives_the_recording(tmp_path):
    result = run(tmp_path, LUAJIT, "-e", f"{WORK} {WORK.replace('0.4', '0.8')} os.exit(7)", options=["-d", "300ms"])
    assert result.returncode == 7
    assert "goes on until it ends" in result.stderr
    assert command_of(tmp_path) == {"exit_status": None, "signal": None}


def test_command_that_is_no_luajit_is_waited_for(tmp_path):
    """ljspy returns the command's failure, if it has one, and not that there is no profile."""
    begin = time.monotonic()
    assert run(tmp_path, "sh", "-c", "sleep 1; exit 5", options=["-d", "200ms"]).returncode == 5
    assert time.monotonic() - begin > 1
    result = run(tmp_path, "sleep", "0.5")
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert "sleep did not run LuaJIT." in result.stderr


def test_ljspys_own_failure_is_told_where_the_command_has_none():
    arguments = ["record", "-f", "svg", "-o", "/dev/full"]
    assert ljspy.run(*arguments, "--", LUAJIT, "-e", WORK).returncode == ljspy.WITH_ERRORS
    assert ljspy.run(*arguments, "--", LUAJIT, "-e", f"{WORK} os.exit(9)").returncode == 9


@pytest.mark.parametrize("command", ["true", LUAJIT], ids=["another program", "LuaJIT"])
def test_command_that_is_over_too_soon(tmp_path, command):
    """ljspy distinguishes this from a command that runs no LuaJIT."""
    output = tmp_path / "x.svg"
    output.write_text("before")
    # On a busy machine even the shortest one may be there for long enough to tell.
    for _ in range(10):
        result = run(tmp_path, command, *(["-e", "x = 1"] if command == LUAJIT else []))
        assert result.returncode == ljspy.NOTHING_PROFILED
        if "ended after" in result.stderr:
            break
    assert "ended after" in result.stderr and "did not run" not in result.stderr
    assert "run for" in result.stderr.splitlines()[1]
    assert output.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["s.json", "x.svg"]


def test_idle_target_is_no_success(tmp_path):
    source = "io.write('ready\\n') io.flush() io.read()"
    with ljspy.Target([LUAJIT, "-e", source]).wait_ready() as target:
        result = ljspy.run("record", "-d", "500ms", "-o", tmp_path / "x.svg", "-p", target.pid)
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert "There is no sample" in result.stderr and "--off-cpu" in result.stderr
    assert os.listdir(tmp_path) == []


def test_a_stopped_target_is_not_called_idle(tmp_path):
    with ljspy.busy() as target:
        os.kill(target.pid, signal.SIGSTOP)
        assert ljspy.wait_until(lambda: ljspy.status_field(target.pid, "State").startswith("T"))
        result = ljspy.run("record", "-d", "500ms", "-o", tmp_path / "x.svg", "-p", target.pid)
        assert ljspy.status_field(target.pid, "State").startswith("T")
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert f"process {target.pid} is stopped" in result.stderr and f"kill -CONT {target.pid}" in result.stderr
    assert "--off-cpu" not in result.stderr


# PTRACE_ATTACH, as gdb does it; what it stops stays so.
TRACES = """
import ctypes, sys, time
assert ctypes.CDLL(None).ptrace(16, int(sys.argv[1]), 0, 0) == 0
time.sleep(60)
"""


def test_a_target_that_another_tracer_has_stopped_is_not_called_idle(tmp_path):
    arguments = ["record", "-d", "500ms", "--no-stop"]
    with ljspy.busy() as target, ljspy.Target([sys.executable, "-c", TRACES, target.pid]) as tracer:
        assert ljspy.wait_until(lambda: ljspy.status_field(target.pid, "State").startswith("t"))
        idle = ljspy.run(*arguments, "-o", tmp_path / "x.svg", "-p", target.pid)
        wall = ljspy.run(*arguments, "--clock", "wall", "-f", "folded", "-o", "-", "-p", target.pid)
    held = f"process {target.pid} is stopped by process {tracer.pid} ("
    assert idle.returncode == ljspy.NOTHING_PROFILED
    assert held in idle.stderr and "--off-cpu" not in idle.stderr
    assert wall.returncode == ljspy.OK and f"It did not run to the end: {held}" in wall.stderr
    assert "main chunk" in wall.stdout and "asleep when sampled" not in wall.stdout


def test_every_stopped_target_is_named(tmp_path):
    with ljspy.busy() as first, ljspy.busy() as second:
        os.kill(second.pid, signal.SIGSTOP)
        both = ["-d", "500ms", "-o", tmp_path / "x.svg", "-p", f"{first.pid},{second.pid}"]
        assert ljspy.wait_until(lambda: ljspy.status_field(second.pid, "State").startswith("T"))
        one = ljspy.run("record", *both)
        os.kill(first.pid, signal.SIGSTOP)
        assert ljspy.wait_until(lambda: ljspy.status_field(first.pid, "State").startswith("T"))
        none = ljspy.run("record", *both)
    assert one.returncode == ljspy.OK and f"process {second.pid} is stopped" in one.stderr
    assert f"kill -CONT {second.pid}" in one.stderr
    assert f"process {first.pid}" not in one.stderr
    assert none.returncode == ljspy.NOTHING_PROFILED
    for pid in (first.pid, second.pid):
        assert f"process {pid} is stopped" in none.stderr and f"kill -CONT {pid}" in none.stderr


# Some time after its first signal, prints all that it got, and exits with status 40.
COUNTS = """
    local ffi = require("ffi")
    ffi.cdef[[
        int sigprocmask(int, const uint64_t *, uint64_t *);
        int sigtimedwait(const uint64_t *, void *, const int64_t *);
    ]]
    local signals, now, got = ffi.new("uint64_t[16]", 2 ^ 0 + 2 ^ 1 + 2 ^ 2 + 2 ^ 14), ffi.new("int64_t[2]"), {}
    ffi.C.sigprocmask(0, signals, nil)
    io.write("ready\\n") io.flush()
    local finish, late = nil, os.clock() + 20
    repeat
        for i = 1, 1e5 do end
        local number = ffi.C.sigtimedwait(signals, nil, now)
        if number > 0 then
            got[#got + 1] = number
            finish = finish or os.clock() + 0.3
        end
    until os.clock() > (finish or late)
    io.write(table.concat(got, " "), "\\n") io.flush()
    os.exit(40)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT], ids=lambda s: s.name)
def test_signal_reaches_the_command_once(tmp_path, number):
    """ljspy writes the recording, and waits until the command ends in its own way."""
    arguments = [ljspy.LJSPY, "record", "-o", tmp_path / "x.svg", "--", LUAJIT, "-e", COUNTS]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        assert recorder.stdout.readline() == "ready\n"
        time.sleep(0.5)
        recorder.send_signal(number)
        assert recorder.stdout.read() == f"{number.value}\n"
        errors = recorder.stderr.read()
    assert recorder.returncode == 40, errors
    assert os.listdir(tmp_path) == ["x.svg"]


def test_signal_while_the_command_is_awaited(tmp_path):
    arguments = [ljspy.LJSPY, "record", "-d", "300ms", "-o", tmp_path / "x.svg", "--", LUAJIT, "-e", COUNTS]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        assert recorder.stdout.readline() == "ready\n"
        for line in recorder.stderr:
            if "goes on" in line:
                break
        recorder.send_signal(signal.SIGTERM)
        assert recorder.stdout.read() == f"{signal.SIGTERM.value}\n"
    assert recorder.returncode == 40


def test_hang_up_does_not_end_what_nohup_has_started(tmp_path):
    with ljspy.busy() as target:
        arguments = ["nohup", ljspy.LJSPY, "record", "-d", "1500ms", "-o", tmp_path / "x.svg", "--stats", tmp_path / "s.json", "-p", str(target.pid)]
        with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as recorder:
            ljspy.wait_traced(target.pid)
            recorder.send_signal(signal.SIGHUP)
        assert recorder.returncode == ljspy.OK
    assert json.loads((tmp_path / "s.json").read_text())["duration_ms"] > 1400


LISTS_FILES = """
import os
def is_open(fd):
    try:
        return bool(os.fstat(fd))
    except OSError:
        return False
print([fd for fd in range(1024) if is_open(fd)])
print(os.read(5, 100).decode(), end="")
"""


def shell(script, tmp_path):
    environment = os.environ | {"LJSPY": ljspy.LJSPY, "LUAJIT": LUAJIT, "OUTPUT": tmp_path / "x.svg"}
    environment = {name: str(value) for name, value in environment.items()}
    return subprocess.run(["bash", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60,
                          check=False)


def test_files_of_the_caller_are_the_commands(tmp_path):
    """Pipes of shells, sockets of systemd: the command has what it has without ljspy, and nothing of ljspy's."""
    (tmp_path / "busy.lua").write_text(WORK + " print('done')")
    (tmp_path / "text").write_text("given\n")
    assert shell('"$LJSPY" record -o "$OUTPUT" -- "$LUAJIT" <(cat busy.lua)', tmp_path).stdout == "done\n"
    listing = f"{sys.executable} -c '{LISTS_FILES}' 5<text 17>&2"
    without = shell(listing, tmp_path).stdout
    assert without == "[0, 1, 2, 5, 17]\ngiven\n"
    assert shell(f'"$LJSPY" record -o "$OUTPUT" -- {listing}', tmp_path).stdout == without


def test_a_pipe_ends_when_the_command_closes_it(tmp_path):
    """None of ljspy's processes holds it: a service that closes its pipe when it is ready is waited for."""
    read, write = os.pipe()
    source = f"require('ffi').cdef('int close(int);') require('ffi').C.close({write}) io.write('closed\\n') io.flush() io.read()"
    argv = [ljspy.LJSPY, "record", "-o", tmp_path / "x.svg", "--", LUAJIT, "-e", source]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          pass_fds=[write]) as recorder:
        os.close(write)
        assert recorder.stdout.readline() == "closed\n"
        with os.fdopen(read) as pipe:
            assert select.select([pipe], [], [], 30)[0] and pipe.read() == ""
        assert recorder.poll() is None
        recorder.stdin.write("\n")
        recorder.stdin.close()
        recorder.wait(60)
