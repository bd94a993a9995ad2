"""ljspy is stopped, or has to wait for a terminal, a disk, or who reads what it
writes: the target runs on. It tells itself for how long it was held.

BUSY_SECONDS makes it longer (`make busy`)."""

import contextlib
import fcntl
import json
import mmap
import os
import pathlib
import pty
import random
import signal
import struct
import subprocess
import termios
import time

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

STOPS = 1000 if "BUSY_SECONDS" in os.environ else 60
GAPS = pathlib.Path(__file__).with_name("gaps.lua")
LONGER_BY_MS = 50
HIGH_RATE = 499
WRITE = "1"  # the number of the system call
NOTES = struct.Struct("QQQ")


class Gaps(ljspy.Target):
    """Spins and notes for how long it could not."""

    def __init__(self, directory, limit=120):
        path = directory / "gaps"
        path.write_bytes(bytes(4096))
        with path.open("r+b") as file:
            self.notes = mmap.mmap(file.fileno(), 4096)
        super().__init__([ljspy.luajit("luajit"), GAPS, path], limit=limit)
        self.wait_ready()
        self.take()

    def take(self):
        """The longest time that it was held since the last call, in milliseconds."""
        held, _, _ = NOTES.unpack_from(self.notes)
        NOTES.pack_into(self.notes, 0, 0, 0, 0)
        return held / 1e6


@pytest.fixture
def target(tmp_path):
    with Gaps(tmp_path, limit=60 + 3 * STOPS) as gaps:
        yield gaps


class Parts:
    """The processes of a ljspy that traces TARGET."""

    def __init__(self, front, target):
        ljspy.wait_traced(target.pid)
        self.front = front
        self.engine = ljspy.tracer(target.pid)
        self.guard = int(ljspy.status_field(self.engine, "PPid"))
        assert ljspy.front(self.engine) == front
        self.waits = {}

    def all(self):
        return [self.front, self.guard, self.engine]

    def watch(self, seconds):
        """For so long, or until nothing is to be seen any more, how long threads of guard and engine
        had to wait for a CPU. Threads come and go."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for pid in (self.guard, self.engine):
                for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
                    with contextlib.suppress(OSError):
                        self.waits[task] = int(task.read_text().split()[1])
            time.sleep(0.002)

    def waited_ms(self):
        self.watch(0.001)
        return sum(self.waits.values()) / 1e6

    def are_gone(self):
        return not any(is_alive(pid) for pid in self.all())


def is_alive(pid):
    try:
        return ljspy.status_field(pid, "State") != "Z"
    except OSError:
        return False


def start(target, *options, command="record", **popen):
    arguments = [command, "-p", target.pid, *options]
    popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | popen
    return subprocess.Popen([ljspy.LJSPY, *map(str, arguments)], **popen)


def is_free(target):
    return ljspy.wait_until(
        lambda: ljspy.status_field(target.pid, "TracerPid") == "0" and ljspy.status_field(target.pid, "State") == "R"
    )


def is_traced(target):
    return ljspy.wait_until(lambda: ljspy.status_field(target.pid, "TracerPid") != "0")


class Longest:
    """For how long the target was held at most, by what was done meanwhile. That it
    waited for a CPU is not its tracer's fault, nor that its tracer did."""

    def __init__(self, target, seconds=2):
        self.target = target
        self.held, self.excess = {}, {}
        target.take()
        time.sleep(seconds)
        self.alone = target.take()

    def begin(self, parts):
        self.parts, self.waited = parts, parts.waited_ms()
        self.target.take()

    def note(self, what):
        held = self.target.take()
        waited = max(0, self.parts.waited_ms() - self.waited)
        self.held[what] = max(self.held.get(what, 0), held)
        self.excess[what] = max(self.excess.get(what, 0), held - self.alone - waited)
        self.begin(self.parts)

    def check(self):
        found = ", ".join(f"{what} {held:.1f} ({self.excess[what]:.1f})" for what, held in self.held.items())
        print(f"\nlongest held, ms (more than alone and the tracer's wait for a CPU): alone {self.alone:.1f}, {found}")
        assert max(self.excess.values()) <= LONGER_BY_MS


def stop(parts, pids, seconds, numbers=(signal.SIGSTOP,)):
    for pid in pids:
        os.kill(pid, random.choice(numbers))
    parts.watch(seconds)
    os.kill(pids[0], signal.SIGCONT)


def is_writing(pid):
    """Whether one of its threads waits until it has written something."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if (task / "syscall").read_text().split()[0] == WRITE:
                return True
    return False


def symbol_server():
    """Processes that read files for an engine; those of other tests among them."""
    return [
        int(path.parent.name)
        for path in pathlib.Path("/proc").glob("[0-9]*/comm")
        if path.read_text() == "ljspy-symbols\n"
    ]


STOPPED = {
    "front": lambda parts, seconds: stop(parts, [parts.front], seconds, (signal.SIGSTOP, signal.SIGTSTP)),
    "guard": lambda parts, seconds: stop(parts, [parts.guard], seconds),
    "engine": lambda parts, seconds: stop(parts, [parts.engine], seconds),
    "all": lambda parts, seconds: stop(parts, [parts.front, *random.sample([parts.guard, parts.engine], 2)], seconds),
}


def test_processes_are_stopped(target, tmp_path):
    longest = Longest(target)
    output, stats = tmp_path / "o.ljspy", tmp_path / "stats.json"
    with start(target, "-r", HIGH_RATE, "-o", output, "--stats", stats) as recorder:
        parts = Parts(recorder.pid, target)
        time.sleep(0.5)
        longest.begin(parts)
        for i in range(STOPS):
            kind = list(STOPPED)[i % len(STOPPED)]
            STOPPED[kind](parts, random.uniform(0.01, 0.35))
            parts.watch(random.uniform(0, 0.15))
            longest.note(f"{kind} stopped")
        assert is_traced(target)
        time.sleep(0.5)
        recorder.send_signal(signal.SIGINT)
        _, err = recorder.communicate(timeout=30)
    assert recorder.returncode == ljspy.OK, err
    assert is_free(target) and parts.are_gone()
    figures = json.loads(stats.read_text())
    print(f"{STOPS} stops; {figures['samples']} samples, away for {figures['away_ms']:.0f} ms")
    assert figures["away_ms"] > 0 and figures["samples"] > 0
    longest.check()


def test_the_front_is_stopped_for_long(target, tmp_path):
    """Everybody is let go of, and the recording goes on afterwards."""
    output, stats = tmp_path / "o.json", tmp_path / "stats.json"
    with start(target, "-o", output, "--stats", stats) as recorder:
        parts = Parts(recorder.pid, target)
        time.sleep(1)
        os.kill(parts.front, signal.SIGTSTP)
        assert is_free(target)
        time.sleep(1.5)
        target.take()
        time.sleep(0.5)
        assert target.take() < 1 + LONGER_BY_MS
        os.kill(parts.front, signal.SIGCONT)
        assert is_traced(target)
        time.sleep(1)
        recorder.send_signal(signal.SIGINT)
        _, err = recorder.communicate(timeout=30)
    assert recorder.returncode == ljspy.OK, err
    figures = json.loads(stats.read_text())
    assert figures["away_ms"] > 1500
    assert b"as ljspy was stopped" in err
    times = [sample["time_ns"] / 1e6 for sample in json.loads(output.read_text())["samples"]]
    gaps = [(later - earlier, earlier) for earlier, later in zip(times, times[1:])]
    longest, at = max(gaps)
    print(f"\n{len(times)} samples, none for {longest:.0f} ms; away for {figures['away_ms']:.0f} ms")
    assert longest > 1500 and at > times[0] and times[-1] - (at + longest) > 300


def test_a_reader_that_stalls(target):
    """A pipe that nobody reads from; Ctrl-C ends the recording all the same."""
    longest = Longest(target)
    reading, writing = os.pipe()
    os.write(writing, bytes(fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ)))
    with start(target, "-r", HIGH_RATE, "-f", "ljspy", "-o", "-", stdout=writing) as recorder:
        os.close(writing)
        parts = Parts(recorder.pid, target)
        longest.begin(parts)
        assert ljspy.wait_until(lambda: is_writing(parts.front), seconds=30)
        time.sleep(1)
        longest.note("reader stalled")
        recorder.send_signal(signal.SIGINT)
        assert is_free(target)
        assert recorder.poll() is None
        recorder.send_signal(signal.SIGINT)
        recorder.wait(timeout=10)
        assert ljspy.wait_until(parts.are_gone)
    os.close(reading)
    assert recorder.returncode == -signal.SIGINT
    longest.check()


def test_the_terminal_is_stopped(target, tmp_path):
    """Ctrl-S: what ljspy says of its progress stays in the terminal."""
    longest = Longest(target)
    master, slave = pty.openpty()
    environment = dict(os.environ, TERM="xterm")
    with start(target, "-o", tmp_path / "o.svg", stderr=slave, env=environment) as recorder:
        parts = Parts(recorder.pid, target)
        termios.tcflow(slave, termios.TCOOFF)
        longest.begin(parts)
        assert ljspy.wait_until(lambda: is_writing(parts.front), seconds=30)
        time.sleep(1)
        longest.note("terminal stopped")
        recorder.send_signal(signal.SIGINT)
        assert is_free(target)
        termios.tcflow(slave, termios.TCOON)
        os.close(slave)
        with contextlib.suppress(OSError):
            while os.read(master, 65536):
                pass
        assert recorder.wait(timeout=30) == ljspy.OK
    os.close(master)
    longest.check()


@pytest.mark.parametrize("part", ["front", "guard", "engine"])
def test_one_is_killed(target, tmp_path, part):
    """At random moments: the target is free at once, and nobody is left over."""
    longest = Longest(target, 1)
    for _ in range(max(3, STOPS // 20)):
        output = tmp_path / "o.ljspy"
        with start(target, "-r", HIGH_RATE, "-o", output) as recorder:
            parts = Parts(recorder.pid, target)
            time.sleep(random.uniform(0, 1.5))
            longest.begin(parts)
            os.kill(getattr(parts, part), signal.SIGKILL)
            assert is_free(target)
            longest.note(f"{part} killed")
            _, err = recorder.communicate(timeout=30)
        assert ljspy.wait_until(parts.are_gone)
        if part != "front":
            assert recorder.returncode in (ljspy.WITH_ERRORS, ljspy.NOTHING_PROFILED)
            assert b"was killed" in err
        if recorder.returncode == ljspy.WITH_ERRORS:
            assert ljspy.run("report", output).returncode == ljspy.OK
    longest.check()


def test_symbols_do_not_come(target, tmp_path):
    """What reads a file's symbols is stopped: signals for the target are passed on."""
    longest = Longest(target)
    before = set(symbol_server())
    with start(target, "-r", HIGH_RATE, "-o", tmp_path / "o.svg", "--native", "all") as recorder:
        parts = Parts(recorder.pid, target)
        assert ljspy.wait_until(lambda: set(symbol_server()) - before)
        servers = set(symbol_server()) - before
        for pid in servers:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
        longest.begin(parts)
        time.sleep(2)
        longest.note("symbols waited for")
        recorder.send_signal(signal.SIGINT)
        _, err = recorder.communicate(timeout=30)
        for pid in servers:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)
    assert recorder.returncode == ljspy.OK, err
    assert is_free(target) and parts.are_gone()
    longest.check()
