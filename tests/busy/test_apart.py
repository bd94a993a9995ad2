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
import re
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


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def tasks_children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


class Parts:
    """The processes of a ljspy that traces TARGET: front, guard and engine."""

    def __init__(self, front, target):
        ljspy.wait_traced(target.pid)
        self.front = front
        self.engine = ljspy.tracer(target.pid)
        self.guard = int(ljspy.status_field(self.engine, "PPid"))
        assert int(ljspy.status_field(self.guard, "PPid")) == front

    def all(self):
        return [self.front, self.guard, self.engine]


def record(target, *options, **popen):
    arguments = ["record", "-p", target.pid, "-r", "499", *options]
    popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | popen
    return subprocess.Popen([ljspy.LJSPY, *map(str, arguments)], **popen)


def state(pid):
    return ljspy.status_field(pid, "State")


def is_free(target):
    return ljspy.status_field(target.pid, "TracerPid") == "0" and state(target.pid) == "R"


def longest_without(target, seconds):
    target.take()
    time.sleep(seconds)
    return target.take()




def stop_front(parts, seconds):
    os.kill(parts.front, random.choice([signal.SIGSTOP, signal.SIGTSTP]))
    time.sleep(seconds)
    os.kill(parts.front, signal.SIGCONT)


def stop_one(pid, seconds):
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)


def stop_all(parts, seconds):
    for pid in random.sample(parts.all(), 3):
        os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(parts.front, signal.SIGCONT)


STOP = {
    "front": stop_front,
    "guard": lambda parts, seconds: stop_one(parts.guard, seconds),
    "engine": lambda parts, seconds: stop_one(parts.engine, seconds),
    "all": stop_all,
}


def test_stops_of_every_kind(target, tmp_path):
    alone = longest_without(target, 2)
    output, stats = tmp_path / "o.ljspy", tmp_path / "stats.json"
    longest = dict.fromkeys(STOP, 0.0)
    with record(target, "-o", output, "--stats", stats) as recorder:
        parts = Parts(recorder.pid, target)
        time.sleep(0.5)
        target.take()
        for i in range(STOPS):
            kind = list(STOP)[i % len(STOP)]
            STOP[kind](parts, random.uniform(0.01, 0.35))
            time.sleep(random.uniform(0, 0.15))
            longest[kind] = max(longest[kind], target.take())
        assert ljspy.wait_until(lambda: ljspy.status_field(target.pid, "TracerPid") != "0")
        time.sleep(0.5)
        recorder.send_signal(signal.SIGINT)
        _, err = recorder.communicate(timeout=30)
    assert recorder.returncode == ljspy.OK, err
    figures = json.loads(stats.read_text())
    print(f"\n{STOPS} stops; longest held, ms: alone {alone:.1f}, "
          + ", ".join(f"{kind} stopped {ms:.1f}" for kind, ms in longest.items())
          + f"; {figures['samples']} samples, away for {figures['away_ms']:.0f} ms")
    assert figures["away_ms"] > 0 and figures["samples"] > 0
    assert max(longest.values()) <= alone + LONGER_BY_MS
    assert is_free(target)
