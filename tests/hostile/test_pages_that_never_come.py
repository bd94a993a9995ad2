# SPDX-License-Identifier: MIT
"""Whoever reads some of the target's memory waits in the kernel for ever, and no signal but SIGKILL ends that.
ljspy gives up, and the target runs on."""

import contextlib
import json
import pathlib
import re
import signal
import subprocess
import threading
import urllib.request

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = pathlib.Path(__file__).resolve().parent / "pages_that_never_come.lua"


@pytest.fixture
def target(request):
    with ljspy.Target([ljspy.luajit("luajit"), PROGRAM, request.param]) as target:
        said = target.read_until(b"\n", seconds=ljspy.READY_SECONDS).strip()
        if said != "ready":
            pytest.skip(said)
        yield target


@pytest.mark.parametrize("target", ["name"], indirect=True)
@pytest.mark.parametrize("command", [
    "record -d 1s -o /dev/null", "record --no-stop -d 1s -o /dev/null", "dump", "heap", "traces -d 1s", "info",
])
def test_what_has_to_read_them_gives_up_and_says_why(target, command):
    command, *options = command.split()
    run = ljspy.run(command, *options, "-p", target.pid)
    assert ljspy.runs_free(target.pid)
    assert run.returncode in (ljspy.WITH_ERRORS, ljspy.NOTHING_PROFILED), run.stderr
    assert f"waiting for memory of process {target.pid} for seconds" in run.stderr


@pytest.mark.parametrize("target", ["name"], indirect=True)
@pytest.mark.parametrize("command", ["record -d 1s -f text -o - -p", "record -d 1s -f text -o - --tree", "dump -p"])
def test_others_are_looked_at_without_it(target, command):
    with ljspy.busy() as other:
        run = ljspy.run(*command.split(), f"{target.pid},{other.pid}")
        assert ljspy.runs_free(target.pid) and ljspy.runs_free(other.pid)
    assert run.returncode == ljspy.WITH_ERRORS, run.stderr
    assert "heavy" in run.stdout
    assert run.stderr.count(f"waiting for memory of process {target.pid} for seconds") == 1


class Engines(threading.Thread):
    """Each process that took samples for this ljspy, or will until the end of the context."""

    def __init__(self, pid):
        super().__init__()
        self.pid, self.seen, self.ends = pid, set(), threading.Event()

    def run(self):
        while not self.ends.wait(0.005):
            for children in pathlib.Path(f"/proc/{self.pid}/task").glob("*/children"):
                with contextlib.suppress(OSError):  # that thread has ended
                    self.seen |= set(children.read_text().split())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.join()


@pytest.mark.parametrize("target", ["name"], indirect=True)
def test_serve_leaves_it_out_in_every_mode(target):
    """A change of the mode begins to sample anew. It does not wait for the process again."""
    with ljspy.busy() as other:
        argv = [ljspy.LJSPY, "serve", "--listen", "127.0.0.1:0", "-p", f"{target.pid},{other.pid}"]
        with subprocess.Popen(list(map(str, argv)), stderr=subprocess.PIPE, text=True) as server:
            try:
                url = re.search(r"http://\S+", server.stderr.readline())[0]
                urllib.request.urlopen(f"{url}/profile?seconds=1", timeout=60).read()
                with Engines(server.pid) as engines:
                    urllib.request.urlopen(f"{url}/wall?seconds=1", timeout=60).read()
                server.send_signal(signal.SIGINT)
                said = server.communicate(timeout=60)[1]
            finally:
                server.kill()
    assert f"waiting for memory of process {target.pid} for seconds" in said
    assert len(engines.seen) == 2, "that of before and one more"


@pytest.mark.parametrize("target", ["name"], indirect=True)
@pytest.mark.parametrize("is_first", [True, False])
def test_the_time_that_it_takes_to_give_up_is_not_that_of_the_others(target, is_first, tmp_path):
    """It is longer than all that is to be recorded."""
    with ljspy.busy() as other:
        pids = [target.pid, other.pid] if is_first else [other.pid, target.pid]
        run = ljspy.run("record", "-d", "1s", "-f", "folded", "-o", "-", "--stats", tmp_path / "stats",
                        "-p", ",".join(map(str, pids)))
    figures = json.loads((tmp_path / "stats").read_text())
    assert run.returncode == ljspy.WITH_ERRORS, run.stderr
    assert "heavy" in run.stdout
    assert figures["duration_ms"] - figures["away_ms"] > 900
    recorded_us = sum(int(line.rsplit(" ", 1)[1]) for line in run.stdout.splitlines())
    assert figures["target_cpu_ms"] == pytest.approx(recorded_us / 1e3, rel=0.02)


@pytest.mark.parametrize("target", ["name"], indirect=True)
def test_what_is_said_of_others_is_said_once(target):
    with ljspy.busy() as other, ljspy.Target(["sleep", "60"]) as native:
        run = ljspy.run("dump", "-p", f"{native.pid},{other.pid},{target.pid}")
    assert f"waiting for memory of process {target.pid} for seconds" in run.stderr
    assert run.stderr.count(f"Process {native.pid} does not run LuaJIT") == 1, run.stderr


@pytest.mark.parametrize("target", ["name"], indirect=True)
def test_each_is_told_once_where_none_is_left(target):
    with ljspy.Target([ljspy.luajit("luajit"), PROGRAM, "name"]) as other:
        other.read_until(b"\n", seconds=ljspy.READY_SECONDS)
        run = ljspy.run("record", "-d", "1s", "-o", "/dev/null", "-p", f"{target.pid},{other.pid}")
        assert ljspy.runs_free(target.pid) and ljspy.runs_free(other.pid)
    assert run.returncode in (ljspy.WITH_ERRORS, ljspy.NOTHING_PROFILED), run.stderr
    for pid in target.pid, other.pid:
        assert run.stderr.count(f"waiting for memory of process {pid} for seconds") == 1, run.stderr
    assert "No other process is left that can be sampled" in run.stderr


@pytest.mark.parametrize("target", ["value"], indirect=True)
def test_a_thread_that_is_held_for_a_value_is_freed(target):
    run = ljspy.run("dump", "--locals", "-p", target.pid)
    assert ljspy.runs_free(target.pid)
    assert run.returncode == ljspy.NOTHING_PROFILED
    assert f"waiting for memory of process {target.pid} for seconds" in run.stderr


@pytest.mark.parametrize("target", ["name"], indirect=True)
def test_who_looks_for_a_target_does_without_them(target):
    """Before it has one, no process of ljspy's has anybody to serve."""
    run = ljspy.run("memory", "-p", target.pid)
    assert ljspy.runs_free(target.pid)
    assert run.returncode in (ljspy.OK, ljspy.WITH_ERRORS), run.stderr
    assert "all" in run.stdout
