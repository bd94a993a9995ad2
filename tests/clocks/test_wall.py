"""The wall clock: where a thread is, whether it runs or not."""

import json
import pathlib
import time
from typing import NamedTuple

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = pathlib.Path(__file__).resolve().parent / "waits.lua"
RATE = 499

# What a share of time may be off by, while ljspy gets to look when it wants to.
TOLERANCE = 0.03


class Recorded(NamedTuple):
    document: dict
    spent: dict  # seconds, by the program's own watch
    lines: dict  # the function of each wait, by its line
    missed: float  # share of the looks that were due
    interrupted: int  # system calls of the program

    def weights(self, member="wall_ns"):
        """Seconds of each wait, by its function and its samples' state."""
        document, found = self.document, {}
        functions = [document["functions"][frame["function"]] for frame in document["frames"]]
        waits = [self.lines.get(f.get("firstline")) if "waits.lua" in f["name"] else None for f in functions]
        for sample in document["samples"]:
            stack = [waits[frame] for frame in document["stacks"][sample["stack"]]]
            key = next(filter(None, stack), None), sample["state"]
            found[key] = found.get(key, 0) + sample[member] / 1e9
        return found

    def by_wait(self):
        found = {}
        for (wait, _), weight in self.weights().items():
            found[wait] = found.get(wait, 0) + weight
        return found


def record(directory, *turns, seconds=3, options=()):
    path = directory / "wall.json"
    result = ljspy.run("record", "--clock", "wall", "-r", RATE, "-o", path, *options, "--",
                       ljspy.luajit("luajit"), PROGRAM, seconds, *turns)  # fmt: skip
    assert result.returncode == ljspy.OK, result.stderr
    *waits, (_, interrupted) = (line.split() for line in result.stdout.splitlines())
    document = json.loads(path.read_text())
    figures = document["figures"]
    missed = figures["missed_ticks"] / (RATE * figures["duration_ms"] / 1000)
    spent = {wait: float(seconds_in) for wait, _, seconds_in in waits}
    return Recorded(document, spent, {int(line): wait for wait, line, _ in waits}, missed, int(interrupted))


def assert_shares(recorded):
    """Each wait has its share of the time."""
    weights, whole = recorded.by_wait(), sum(recorded.spent.values())
    measured = sum(weights.get(wait, 0) for wait in recorded.spent)
    for wait, spent in recorded.spent.items():
        off = weights.get(wait, 0) / measured - spent / whole
        assert abs(off) <= TOLERANCE + recorded.missed, (wait, off, recorded.missed)


def assert_state(recorded, wait, state):
    """Asleep, it is in that state; it runs but for a moment."""
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


def test_all_of_a_threads_time_is_told(tmp_path):
    """What goes by is what samples stand for, and CPU time is as the kernel has it."""
    begin = time.monotonic()
    recorded = record(tmp_path, "compute", "sleep", "poll_several")
    samples, figures = recorded.document["samples"], recorded.document["figures"]
    told = sum(sample["wall_ns"] for sample in samples) / 1e9
    assert sum(recorded.spent.values()) * 0.97 <= told <= time.monotonic() - begin
    cpu = sum(sample["cpu_ns"] for sample in samples) / 1e6
    assert abs(cpu - figures["target_cpu_ms"]) <= 0.03 * figures["target_cpu_ms"] + 1000 / RATE
    assert all(sample["cpu_ns"] in (0, sample["wall_ns"]) for sample in samples)
