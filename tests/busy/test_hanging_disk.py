# SPDX-License-Identifier: MIT
"""The disk with a target's files no longer answers: the target, whose pages are in
memory, runs on, and ljspy does not hold it up."""

import contextlib
import json
import time

import pytest

import ljspy
from disk import Disk
from gaps import GAPS, IS_URGENT, LONGER_BY_MS, URGENTLY, Gaps

pytestmark = pytest.mark.usefixtures("built")

# Where ljspy may not be urgent, it waits for a CPU now and then. The disk hangs for much longer than that.
HELD_MS = LONGER_BY_MS if IS_URGENT else 1000
@pytest.fixture
def disk(tmp_path):
    with Disk(tmp_path, ljspy.luajit("luajit"), GAPS) as disk:
        yield disk


@pytest.fixture
def target(disk, tmp_path):
    with Gaps(tmp_path, program=[*disk.inside, disk.directory / "luajit", disk.directory / "gaps.lua"]) as gaps:
        # By then the target has all its pages.
        time.sleep(0.5)
        yield gaps
        # To end, the target may need pages from the disk.
        disk.server.process.kill()


@contextlib.contextmanager
def not_held(target):
    target.take()
    time.sleep(0.5)
    alone = target.take()
    yield
    held = target.take()
    print(f"\nheld for {held:.1f} ms at most, {alone:.1f} alone")
    assert held <= alone + HELD_MS


def test_it_hangs_from_the_beginning(disk, target, tmp_path):
    """ljspy can read no file, and still knows the Lua that runs."""
    stats = tmp_path / "stats.json"
    disk.hang("luajit")
    with not_held(target):
        run = ljspy.run("record", "-p", target.pid, "-d", "4s", "--stats", stats, "-o", tmp_path / "o.folded",
                        "--native", "all", through=URGENTLY)
    assert run.returncode == ljspy.OK, run.stderr
    figures = json.loads(stats.read_text())
    print(f"{figures['samples']} samples, lost {figures['lost']}")
    assert figures["samples"] > 0
    assert "gaps.lua:" in (tmp_path / "o.folded").read_text()


def test_it_hangs_meanwhile(disk, target, tmp_path):
    recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=4, rate=499, options=["--native", "all"], through=URGENTLY)
    ljspy.wait_traced(target.pid)
    time.sleep(1)
    with not_held(target):
        disk.hang("luajit", forgets=True)
        recording = recorder.finish()
    assert recording.stats["samples"] > 0


@pytest.mark.parametrize("command", ["dump", "info", "traces"])
def test_other_commands(disk, target, command):
    disk.hang("luajit")
    with not_held(target):
        run = ljspy.run(command, "-p", target.pid, through=URGENTLY)
    assert run.returncode in (ljspy.OK, ljspy.WITH_ERRORS), run.stderr
    assert str(target.pid) in run.stdout
