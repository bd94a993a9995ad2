# SPDX-License-Identifier: MIT
"""ljspy is stopped, or waits for a terminal, a disk, or the reader of its output:
the target runs on. The target itself measures how long it was held.

BUSY_SECONDS makes the test longer (`make busy`)."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import random
import select
import signal
import statistics
import subprocess
import termios
import threading
import time

import pytest

import ljspy
from gaps import IS_URGENT, LONGER_BY_MS, URGENTLY, Gaps

pytestmark = pytest.mark.usefixtures("built")

# Stops of all kinds together, one after the other: 1,000 for 20 seconds.
STOPS = round(50 * float(os.environ.get("BUSY_SECONDS", 0.84)))
HIGH_RATE = 499
WORK_NS = 5e8  # of the target, which gives samples for longer than 300 ms
ONE_SIGNAL_S = 0.3  # signals closer together count as one
COROUTINES = pathlib.Path(__file__).with_name("coroutines.lua")
COROUTINE_COUNT = 40000


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

    def all(self):
        return [self.front, self.guard, self.engine]

    def are_gone(self):
        return not any(is_alive(pid) for pid in self.all())


def is_alive(pid):
    try:
        return ljspy.status_field(pid, "State") != "Z"
    except OSError:
        return False


class Started(subprocess.Popen):
    """If the test fails, kills ljspy instead of waiting for it, as it may wait for the test."""

    def __exit__(self, kind, *rest):
        if kind:
            self.kill()
        super().__exit__(kind, *rest)


def start(target, *options, command="record", **popen):
    arguments = [command, "-p", target.pid, *options]
    popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | popen
    # As a shell does it: SIGTSTP does not stop a group without a parent outside of it.
    popen["process_group"] = 0
    return Started([*URGENTLY, ljspy.LJSPY, *map(str, arguments)], **popen)


def is_free(target):
    return ljspy.wait_until(
        lambda: ljspy.status_field(target.pid, "TracerPid") == "0" and ljspy.status_field(target.pid, "State") == "R"
    )


def is_traced(target):
    return ljspy.wait_until(lambda: ljspy.status_field(target.pid, "TracerPid") != "0")


class Held:
    """The longest hold of the target during each action. It does not count against ljspy
    that the target waits for a CPU. The test does not look for ljspy's own waits for a
    CPU, so ljspy is more urgent than others where that is allowed; else the machine's
    other work makes some holds long, and the median counts."""

    def __init__(self, target, seconds=1, untraced=None):
        self.target, self.untraced = target, untraced
        self.times = {}
        target.take()
        time.sleep(seconds)
        self.alone = target.take()

    def begin(self):
        self.target.take()

    def note(self, what):
        self.times.setdefault(what, []).append(self.target.take())

    def check(self):
        longest = ", ".join(f"{what} {max(times):.1f}" for what, times in self.times.items())
        if self.untraced:
            self.alone = max(self.alone, self.untraced.take())
        print(f"\nlongest held, ms: alone {self.alone:.1f}, {longest}")
        judge = max if IS_URGENT else statistics.median
        for what, times in self.times.items():
            assert judge(times) <= self.alone + LONGER_BY_MS, what


def stop(pids, seconds, numbers=(signal.SIGSTOP,)):
    for pid in pids:
        os.kill(pid, random.choice(numbers))
    time.sleep(seconds)
    os.kill(pids[0], signal.SIGCONT)


def symbol_server():
    """Processes that read files for an engine, including those of other tests."""
    return [
        int(path.parent.name)
        for path in pathlib.Path("/proc").glob("[0-9]*/comm")
        if path.read_text() == "ljspy-symbols\n"
    ]


class Drain:
    """Reads from FD and discards it, except during a stall."""

    def __init__(self, fd):
        self.fd = fd
        self.goes_on, self.ends = threading.Event(), False
        self.goes_on.set()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.ends:
            self.goes_on.wait()
            if select.select([self.fd], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    os.read(self.fd, 1 << 16)

    def stall(self, seconds):
        self.goes_on.clear()
        time.sleep(seconds)
        self.goes_on.set()

    def end(self):
        self.ends = True
        self.goes_on.set()
        self.thread.join()
        os.close(self.fd)


class Surroundings:
    """A small pipe for a recording's output, and a terminal for ljspy's progress."""

    def __init__(self):
        reading, self.pipe = os.pipe()
        fcntl.fcntl(self.pipe, fcntl.F_SETPIPE_SZ, 4096)
        master, self.terminal = pty.openpty()
        self.filler = bytes(fcntl.fcntl(self.pipe, fcntl.F_GETPIPE_SZ))
        os.set_blocking(reading, False)
        self.reader, self.screen = Drain(reading), Drain(master)

    def stall_reader(self, seconds):
        """Fill the pipe and stop reading; what is in it does not matter."""
        self.reader.goes_on.clear()
        filling = os.open(f"/proc/self/fd/{self.pipe}", os.O_WRONLY | os.O_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            os.write(filling, self.filler)
        os.close(filling)
        self.reader.stall(seconds)

    def stop_terminal(self, seconds):
        termios.tcflow(self.terminal, termios.TCOOFF)
        time.sleep(seconds)
        termios.tcflow(self.terminal, termios.TCOON)

    def end(self):
        self.reader.end()
        self.screen.end()
        os.close(self.pipe)
        os.close(self.terminal)


def stop_symbols(servers, seconds):
    for pid in servers:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    for pid in servers:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGCONT)


SHORT, LONG = (0.01, 0.35), (0.3, 1.1)  # ljspy writes a recording once a second
KINDS = {
    "front stopped": (SHORT, lambda s, parts, seconds: stop([parts.front], seconds, (signal.SIGSTOP, signal.SIGTSTP))),
    "guard stopped": (SHORT, lambda s, parts, seconds: stop([parts.guard], seconds)),
    "engine stopped": (SHORT, lambda s, parts, seconds: stop([parts.engine], seconds)),
    "all stopped": (
        SHORT,
        lambda s, parts, seconds: stop([parts.front, *random.sample([parts.guard, parts.engine], 2)], seconds),
    ),
    "symbols stopped": (SHORT, lambda s, parts, seconds: stop_symbols(parts.symbols, seconds)),
    "reader stalled": (LONG, lambda s, parts, seconds: s.stall_reader(seconds)),
    "terminal stopped": (LONG, lambda s, parts, seconds: s.stop_terminal(seconds)),
}


@pytest.fixture
def untraced(tmp_path):
    """Runs beside the target in long tests: what holds it, too, is the machine."""
    if "BUSY_SECONDS" not in os.environ:
        yield None
        return
    directory = tmp_path / "untraced"
    directory.mkdir()
    with Gaps(directory, limit=60 + 3 * STOPS) as gaps:
        yield gaps


@pytest.mark.timeout(120 + 2 * STOPS)
def test_stops_and_stalls(target, untraced, tmp_path):
    """Stops and stalls of every kind, in one recording."""
    held = Held(target, untraced=untraced)
    stats = tmp_path / "stats.json"
    surroundings = Surroundings()
    before = set(symbol_server())
    options = ("-r", HIGH_RATE, "--native", "all", "-f", "ljspy", "-o", "-", "--stats", stats)
    environment = dict(os.environ, TERM="xterm")
    with start(target, *options, stdout=surroundings.pipe, stderr=surroundings.terminal, env=environment) as recorder:
        parts = Parts(recorder.pid, target)
        time.sleep(0.5)
        parts.symbols = set(symbol_server()) - before
        held.begin()
        for i in range(STOPS):
            kind = list(KINDS)[i % len(KINDS)]
            seconds, cause = KINDS[kind]
            cause(surroundings, parts, random.uniform(*seconds))
            time.sleep(random.uniform(0, 0.15))
            held.note(kind)
        assert is_traced(target)
        time.sleep(0.5)
        recorder.send_signal(signal.SIGINT)
        recorder.wait(timeout=30)
    surroundings.end()
    assert recorder.returncode == ljspy.OK
    assert is_free(target) and parts.are_gone()
    figures = json.loads(stats.read_text())
    print(f"{STOPS} stops; {figures['samples']} samples, away for {figures['away_ms']:.0f} ms")
    assert figures["away_ms"] > 0 and figures["samples"] > 0
    held.check()


def test_the_front_is_stopped_for_long(target, tmp_path):
    """ljspy lets go of all targets, and the recording goes on afterwards."""
    output, stats = tmp_path / "o.json", tmp_path / "stats.json"
    with start(target, "-o", output, "--stats", stats) as recorder:
        parts = Parts(recorder.pid, target)
        ljspy.await_work(target.pid, ljspy.cpu_ns(target.pid) + WORK_NS, recorder)
        os.kill(parts.front, signal.SIGTSTP)
        assert is_free(target)
        time.sleep(1.5)
        target.take()
        time.sleep(0.5)
        assert target.take() < 1 + LONGER_BY_MS
        os.kill(parts.front, signal.SIGCONT)
        assert is_traced(target)
        ljspy.await_work(target.pid, ljspy.cpu_ns(target.pid) + WORK_NS, recorder)
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


@pytest.mark.parametrize("command", ["dump", "traces"])
def test_the_front_of_another_command_is_stopped(tmp_path, command):
    """The command begins anew when its front goes on."""
    with ljspy.Target([ljspy.luajit("luajit"), COROUTINES, COROUTINE_COUNT], limit=60) as target:
        target.wait_ready()
        with start(target, command=command) as process:
            ljspy.wait_traced(target.pid)
            time.sleep(0.02)  # a dump of this target takes half a second
            process.send_signal(signal.SIGSTOP)
            assert is_free(target)
            time.sleep(0.5)
            assert is_free(target)
            process.send_signal(signal.SIGCONT)
            assert is_traced(target)
            out, err = process.communicate(timeout=60)
    assert process.returncode == ljspy.OK, err
    if command == "dump":
        assert f"{COROUTINE_COUNT} suspended" in out.decode()


@pytest.mark.parametrize("command", ["dump", "info", "traces"])
def test_the_reader_of_another_command_stalls(target, command):
    """The command writes only when it holds no target any more."""
    held = Held(target)
    with ljspy.stalled_pipe() as writing, start(target, command=command, stdout=writing) as process:
        held.begin()
        assert ljspy.wait_until(lambda: ljspy.is_writing(process.pid), seconds=30)
        assert is_free(target)
        time.sleep(0.3)
        held.note(command)
        process.kill()
    held.check()


def test_a_reader_that_stalls(target):
    """Nothing reads from the pipe; Ctrl-C ends the recording all the same."""
    held = Held(target)
    reading, writing = os.pipe()
    os.write(writing, bytes(fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ)))
    options = ("-r", HIGH_RATE, "-f", "ljspy", "-o", "-")
    with ljspy.stalled_pipe() as writing, start(target, *options, stdout=writing) as recorder:
        parts = Parts(recorder.pid, target)
        held.begin()
        assert ljspy.wait_until(lambda: ljspy.is_writing(parts.front), seconds=30)
        time.sleep(1)
        held.note("reader stalled")
        recorder.send_signal(signal.SIGINT)
        assert ljspy.wait_until(lambda: not is_alive(parts.engine))
        assert recorder.poll() is None
        time.sleep(ONE_SIGNAL_S)
        recorder.send_signal(signal.SIGINT)
        recorder.wait(timeout=30)
        assert ljspy.wait_until(parts.are_gone)
    assert is_free(target)
    assert recorder.returncode == -signal.SIGINT
    held.check()


def test_the_terminal_is_stopped(target, tmp_path):
    """Ctrl-S: recording goes on without its progress, and ends at a signal with all it has to write."""
    held = Held(target)
    master, slave = pty.openpty()
    environment = dict(os.environ, TERM="xterm")
    output = tmp_path / "o.folded"
    with start(target, "-o", output, stderr=slave, env=environment) as recorder:
        said = b""
        while b"samples" not in said:  # progress is shown
            said += os.read(master, 65536)
        termios.tcflow(slave, termios.TCOOFF)
        held.begin()
        time.sleep(2.5)  # progress would be shown twice
        held.note("terminal stopped")
        recorder.send_signal(signal.SIGINT)
        assert is_free(target)
        assert ljspy.wait_until(output.exists, seconds=30)
        termios.tcflow(slave, termios.TCOON)
        os.close(slave)
        with contextlib.suppress(OSError):
            while os.read(master, 65536):
                pass
        assert recorder.wait(timeout=30) == ljspy.OK
    os.close(master)
    held.check()


@pytest.mark.parametrize("part", ["front", "guard", "engine"])
def test_one_is_killed(target, tmp_path, part):
    """At random moments: the target is free at once, and no process of ljspy is left."""
    held = Held(target)
    for _ in range(max(3, STOPS // 20)):
        output = tmp_path / "o.ljspy"
        with start(target, "-r", HIGH_RATE, "-o", output) as recorder:
            parts = Parts(recorder.pid, target)
            time.sleep(random.uniform(0, 1.5))
            held.begin()
            os.kill(getattr(parts, part), signal.SIGKILL)
            assert is_free(target)
            held.note(f"{part} killed")
            _, err = recorder.communicate(timeout=30)
        assert ljspy.wait_until(parts.are_gone)
        if part != "front":
            assert recorder.returncode in (ljspy.WITH_ERRORS, ljspy.NOTHING_PROFILED)
            assert b"was killed" in err
        if recorder.returncode == ljspy.WITH_ERRORS:
            assert ljspy.run("report", output).returncode == ljspy.OK
    held.check()


def test_what_was_seen_before_the_engine_was_killed_has_its_figures(target, tmp_path):
    output = tmp_path / "o.ljspy"
    with start(target, "-r", HIGH_RATE, "-o", output) as recorder:
        parts = Parts(recorder.pid, target)
        used = ljspy.cpu_ns(target.pid)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(target.pid) > used + 1e9, seconds=100)
        os.kill(parts.engine, signal.SIGKILL)
        said = recorder.communicate(timeout=30)[1].decode()
    assert f"{HIGH_RATE} Hz asked" in said and "target 0 ms" not in said
    figures = json.loads(ljspy.run("report", output, "-f", "json").stdout)["figures"]
    assert figures["rate_hz"]["asked"] == HIGH_RATE and figures["rate_hz"]["reached"] > 0
    assert figures["target_cpu_ms"] > 500, said  # of a second


def test_symbols_do_not_come(target, tmp_path):
    """The process that reads symbols is stopped: ljspy still passes on signals for the target."""
    held = Held(target)
    before = set(symbol_server())
    with start(target, "-r", HIGH_RATE, "-o", tmp_path / "o.svg", "--native", "all") as recorder:
        parts = Parts(recorder.pid, target)
        assert ljspy.wait_until(lambda: set(symbol_server()) - before)
        servers = set(symbol_server()) - before
        for pid in servers:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
        held.begin()
        time.sleep(2)
        held.note("symbols waited for")
        recorder.send_signal(signal.SIGINT)
        _, err = recorder.communicate(timeout=30)
        for pid in servers:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)
    assert recorder.returncode == ljspy.OK, err
    assert is_free(target) and parts.are_gone()
    held.check()
