# SPDX-License-Identifier: MIT
"""The wall clock shows where a thread is, whether it runs or not."""

import collections
import json
import os
import pathlib
import re
import time
from typing import NamedTuple

import pytest

import ljspy
from busy.surroundings import spinners

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE / "waits.lua"
RATE = 499

# The error of a share of time, if ljspy gets a CPU for each look.
TOLERANCE = 0.04

# What a wait's leaves read as, with --off-cpu.
LEAVES = {
    "resolve": r"DNS lookup at 127\.0\.0\.1:53 \(recvfrom\)",
    "resolve_by_poll": r"DNS lookup at 127\.0\.0\.1:53 \(p?poll\)",
    "connect": r"connect 127\.0\.0\.1:\d+",
    "read_pipe": "read pipe",
    "read_fifo": r"read /\S+",
    "execute": "wait4 (sh|sleep)",
    "lock": r"futex \(condition\)",
    "sleep": "clock_nanosleep",
}


class Recorded(NamedTuple):
    document: dict
    spent: dict  # seconds, as the program itself measures
    queued: dict  # those of them in which it waited for a CPU
    lines: dict  # the function of each wait, by its line
    missed: float  # share of due looks
    interrupted: int  # system calls of the program

    def waits(self):
        """The wait of each sample, by the function in its stack; None if there is none."""
        document = self.document
        functions = [document["functions"][frame["function"]] for frame in document["frames"]]
        waits = [self.lines.get(f.get("firstline")) if "waits.lua" in f["name"] else None for f in functions]
        stacks = [next(filter(None, (waits[frame] for frame in stack)), None) for stack in document["stacks"]]
        return [stacks[sample["stack"]] for sample in document["samples"]]

    def weights(self):
        """Seconds by a wait's name and its samples' state."""
        found = {}
        for sample, wait in zip(self.document["samples"], self.waits()):
            key = wait, sample["state"]
            found[key] = found.get(key, 0) + sample["wall_ns"] / 1e9
        return found

    def by_wait(self):
        found = {}
        for (wait, _), weight in self.weights().items():
            found[wait] = found.get(wait, 0) + weight
        return found


def report(path, *options, status=ljspy.OK):
    result = ljspy.run("report", path, "-f", "json", *options)
    assert result.returncode == status, result.stderr
    return json.loads(result.stdout) if status == ljspy.OK else result.stderr


def record(directory, *turns, seconds=3, by=()):
    """by: a command that runs the program's."""
    path = directory / "wall.ljspy"
    result = ljspy.run("record", "--clock", "wall", "-r", RATE, "-o", path, "--", *by,
                       ljspy.luajit("luajit"), PROGRAM, seconds, *turns)  # fmt: skip
    assert result.returncode == ljspy.OK, result.stderr
    return recorded_of(report(path), result.stdout)


def recorded_of(document, said, rate=RATE):
    """From the recording of a program, and what it has said."""
    *waits, (_, interrupted) = (line.split() for line in said.splitlines())
    lines = {int(line): wait for wait, line, _, _ in waits}
    figures = document["figures"]
    missed = figures["missed_ticks"] / (rate * figures["duration_ms"] / 1000)
    spent = {wait: float(seconds_in) for wait, _, seconds_in, _ in waits}
    queued = {wait: float(seconds_in) for wait, _, _, seconds_in in waits}
    return Recorded(document, spent, queued, lines, missed, int(interrupted))


def assert_shares(recorded):
    """
    Each wait has its share of the time in which the program did not wait for a CPU. Of waits for a CPU, ljspy does not
    always know where they were, but tells of no more than there were.
    """
    weights = collections.Counter()
    for (wait, state), weight in recorded.weights().items():
        weights[wait] += weight * (state != "runnable")
    spent_on = {wait: spent - recorded.queued[wait] for wait, spent in recorded.spent.items()}
    whole = sum(spent_on.values())
    measured = sum(weights[wait] for wait in spent_on)
    waited = sum(recorded.weights().get((wait, "runnable"), 0) for wait in spent_on)
    queued = sum(recorded.queued.values())
    assert waited <= queued + (TOLERANCE + recorded.missed) * sum(recorded.spent.values()), (waited, queued)
    for wait, spent in spent_on.items():
        off = weights[wait] / measured - spent / whole
        assert abs(off) <= TOLERANCE + recorded.missed, (wait, off, recorded.missed)


def assert_state(recorded, wait, state):
    """A sleeping thread has this state; it runs only for moments."""
    weights = {key[1]: weight for key, weight in recorded.weights().items() if key[0] == wait}
    asleep = {key: weight for key, weight in weights.items() if key not in ("running", "runnable", "uninterruptible")}
    assert set(asleep) == {state}, weights


@pytest.mark.parametrize("turns", [
    ("compute", "sleep", "execute"),
    ("resolve", "read_pipe", "lock"),
    ("events", "resolve_by_poll", "compute"),
], ids="-".join)  # fmt: skip
def test_each_wait_has_its_share_of_time(tmp_path, turns):
    recorded = record(tmp_path, *turns)
    assert_shares(recorded)
    assert recorded.interrupted == 0
    for wait in turns:
        if wait != "compute":
            assert_state(recorded, wait, "idle" if wait == "events" else "blocked")


def test_a_wait_for_a_cpu_is_where_the_thread_was_woken(tmp_path):
    """Others want the CPU each time a sleep is over, and then there is little work."""
    cpu = min(os.sched_getaffinity(0))
    with spinners(2, cpu, limit=60):
        recorded = record(tmp_path, "sleep", "moment", seconds=6, by=("taskset", "-c", cpu))
    weights = recorded.weights()
    woken = recorded.spent["sleep"] - weights["sleep", "blocked"]
    of_all = woken / (woken + recorded.spent["moment"])
    if of_all < 0.4:
        pytest.skip(f"the program got its CPU at once: {woken:.2f} s of waits")
    waits = {wait: weights.get((wait, "runnable"), 0) for wait in recorded.spent}
    assert waits["sleep"] / sum(waits.values()) > of_all / 2, (waits, recorded.spent)


def test_all_of_a_threads_time_is_told(tmp_path):
    """Samples stand for all time that passes, and CPU time is as the kernel counts it."""
    begin = time.monotonic()
    recorded = record(tmp_path, "compute", "sleep", "poll_several")
    samples, figures = recorded.document["samples"], recorded.document["figures"]
    told = sum(sample["wall_ns"] for sample in samples) / 1e9
    # The program ends some time after the last look.
    assert sum(recorded.spent.values()) * (1 - TOLERANCE - recorded.missed) <= told <= time.monotonic() - begin
    cpu = sum(sample["cpu_ns"] for sample in samples) / 1e6
    assert abs(cpu - figures["target_cpu_ms"]) <= 0.03 * figures["target_cpu_ms"] + 1000 / RATE
    assert all(sample["cpu_ns"] in (0, sample["wall_ns"]) for sample in samples)


STRIPPED = """
local chunk = string.dump(load([[
    local ffi = require "ffi"
    ffi.cdef "int usleep(unsigned);"
    local function nap() ffi.C.usleep(20000) end
    for _ = 1, 50 do nap() end
]]), true)
load(chunk)()
"""


def test_a_function_without_debug_info_that_sleeps_is_blocked(tmp_path):
    """Such a function says of itself no more than a main chunk, which would be idle."""
    output = tmp_path / "wall.json"
    result = ljspy.run("record", "--clock", "wall", "-r", RATE, "-o", output,
                       "--", ljspy.luajit("luajit"), "-e", STRIPPED)
    assert result.returncode == ljspy.OK, result.stderr
    states = collections.Counter()
    for sample in json.loads(output.read_text())["samples"]:
        states[sample["state"]] += sample["wall_ns"]
    assert states["blocked"] > 0.5e9 and states["idle"] < 0.1 * states["blocked"], states


def leaves_of(document, recorded):
    """The leaves of each wait's stacks."""
    leaves = collections.defaultdict(set)
    names = [document["functions"][frame["function"]]["name"] for frame in document["frames"]]
    for sample, wait in zip(document["samples"], recorded._replace(document=document).waits()):
        leaves[wait].add(names[document["stacks"][sample["stack"]][-1]])
    return leaves


def right_leaves(leaves):
    """Those that read as they should, with their waits."""
    return {(wait, leaf) for wait, text in LEAVES.items() for leaf in leaves[wait] if re.fullmatch(rf"{text} \[kernel\]", leaf)}


def test_time_off_the_cpu_has_what_is_waited_for_as_leaf(tmp_path):
    recorded = record(tmp_path, "resolve", "resolve_by_poll", "connect", "read_pipe", "read_fifo", "execute", "lock",
                      "sleep", "events")  # fmt: skip
    assert recorded.interrupted == 0
    leaves = leaves_of(report(tmp_path / "wall.ljspy", "--off-cpu"), recorded)
    right = right_leaves(leaves)
    # On a busy machine ljspy may miss all of one wait.
    assert len({wait for wait, _ in right}) >= len(LEAVES) - 2, leaves
    others = {leaf for wait, found in leaves.items() for leaf in found if (wait, leaf) not in right}
    # Of a call that ends while ljspy looks, what it waits for may be unknown, but is not another's.
    assert not any(re.match(r"DNS|connect \S+ \[|futex \(|clock_nanosleep", leaf) for leaf in others), leaves
    # The report omits an event loop's own wait, unless asked for it.
    assert "epoll_wait [kernel]" not in leaves["events"]
    idle = leaves_of(report(tmp_path / "wall.ljspy", "--off-cpu", "--state", "idle"), recorded)
    assert set().union(*idle.values()) <= {"epoll_wait [kernel]"}


def test_what_is_waited_for_is_compared(tmp_path):
    paths = [tmp_path / name for name in ("before", "after")]
    for path, wait in zip(paths, ("sleep", "lock")):
        path.mkdir()
        record(path, wait)
    result = ljspy.run("diff", "--off-cpu", "-f", "folded", *(path / "wall.ljspy" for path in paths))
    assert result.returncode == ljspy.OK, result.stderr
    before, after = collections.Counter(), collections.Counter()
    for line in result.stdout.splitlines():
        stack, *weights = line.rsplit(" ", 2)
        leaf = stack.rsplit(";", 1)[-1]
        before[leaf] += int(weights[0])
        after[leaf] += int(weights[1])
    slept, locked = "clock_nanosleep [kernel]", "futex (condition) [kernel]"
    assert before[slept] > 0 == after[slept], (before, after)
    assert after[locked] > 0 == before[locked], (before, after)


def test_what_sleeps_is_seen_without_stopping_it(tmp_path):
    program = HERE / "parked.lua"
    with ljspy.Target([ljspy.luajit("luajit"), program, 20]).wait_ready() as target:
        result = ljspy.run("record", "--no-stop", "--clock", "wall", "-d", "1s", "-o", tmp_path / "wall.ljspy",
                           "-p", target.pid)  # fmt: skip
    assert result.returncode == ljspy.OK, result.stderr
    # The closing figures have no pauses.
    assert "samples" in result.stderr and "pause" not in result.stderr
    result = ljspy.run("report", tmp_path / "wall.ljspy", "-f", "folded", "--off-cpu", "--state", "idle")
    lines = [line.rpartition(" ") for line in result.stdout.splitlines()]
    weights = {stack: int(weight) for stack, _, weight in lines}
    poll = f"main chunk {program};poll [libc.so.6];poll [kernel]"
    assert weights.get(poll, 0) > sum(weights.values()) / 2, weights


def test_one_recording_shows_both_clocks(tmp_path):
    """Time off the CPU is the elapsed time minus the CPU time."""
    path = tmp_path / "wall.ljspy"
    recorded = record(tmp_path, "compute", "sleep", "read_pipe", seconds=2)
    every_state = "running,runnable,blocked,idle,uninterruptible"
    views = [report(path, *options) for options in (
        (), ("--clock", "cpu"), ("--off-cpu", "--state", every_state))]  # fmt: skip
    wall, cpu, off = (sum(sample["wall_ns"] for sample in view["samples"]) for view in views)
    assert [view["session"]["clock"] for view in views] == ["wall", "cpu", "off-cpu"]
    assert cpu == sum(sample["cpu_ns"] for sample in recorded.document["samples"])
    assert off == wall - cpu
    elapsed = sum(recorded.spent.values())
    used = recorded.document["figures"]["target_cpu_ms"] / 1000
    assert abs(off / 1e9 - (elapsed - used)) <= (TOLERANCE + recorded.missed) * elapsed + 0.1
    assert all(sample["state"] == "running" or sample["cpu_ns"] for sample in views[1]["samples"])


def test_a_recording_of_what_runs_has_no_other_time(tmp_path):
    path = tmp_path / "cpu.ljspy"
    # So much work takes CPU time, however busy the machine is.
    result = ljspy.run("record", "-o", path, "--", ljspy.luajit("luajit"), "-joff", "-e", "for _ = 1, 1e8 do end")
    assert result.returncode == ljspy.OK, result.stderr
    for options in (["--clock", "wall"], ["--off-cpu"]):
        complaint = report(path, *options, status=ljspy.NOTHING_PROFILED)
        assert "what slept is not in it" in complaint


def test_recordings_of_version_1_are_readable():
    """The first ljspy with a wall clock made it: it lacks what threads waited for."""
    document = report(HERE / "version-1.ljspy", "--off-cpu")
    assert {sample["state"] for sample in document["samples"]} <= {"blocked", "runnable", "uninterruptible"}
    assert sum(sample["wall_ns"] for sample in document["samples"]) > 0
    assert all(sample["wait"] is None for sample in document["samples"])
