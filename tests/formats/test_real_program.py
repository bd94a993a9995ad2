# SPDX-License-Identifier: MIT
"""A real program, recorded in each format and read by the program the format is for."""

import pytest

import ljspy
import stacks
from readers import Json, dotted, parse_folded, totals_of_stacks

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = stacks.Program(stacks.PROGRAMS / "shares.lua")


@pytest.fixture
def record(tmp_path):
    def record(form):
        path = tmp_path / f"profile.{form}"
        with ljspy.program("luajit", PROGRAM.name, jit="off") as target:
            result = ljspy.run("record", "-p", target.pid, "-d", "1s", "-r", ljspy.HIGH_RATE, "-f", form, "-o", path)
        assert result.returncode == ljspy.OK, result.stderr
        return path

    return record


def check(totals, name=str):
    """The program runs only its main chunk, where "heavy" takes most of the time. The limits
    allow for samples lost on a busy machine."""
    whole = sum(own for own, _ in totals.values())
    assert whole > 0
    assert totals[name(f"main chunk {PROGRAM.path.name}")][1] > 0.5 * whole
    heavy = [own for one, (own, _) in totals.items() if one.startswith(name("heavy shares.lua:5").removesuffix("5"))]
    assert sum(heavy) > 0.3 * whole


def test_json(record):
    document = Json(record("json"))
    check(document.totals())
    times = [sample["time_ns"] for sample in document.document["samples"]]
    assert times == sorted(times) and times[0] >= 0


def test_folded(record, inferno):
    check(inferno.folded_totals(record("folded")))


def test_pprof(record, pprof):
    check(pprof.totals(record("pprof")), dotted)


def test_speedscope(record, speedscope):
    merged, threads = speedscope.totals(record("speedscope"))
    check(merged)
    assert merged == threads


def test_firefox(record, firefox):
    firefox.open(record("firefox"))
    check(firefox.totals())


def test_callgrind(record, callgrind):
    functions = [{"file": "shares.lua", "name": "main chunk shares.lua"}]
    path = record("callgrind")
    own = callgrind.costs(path)
    (main,) = callgrind.totals(path, functions).values()
    whole = sum(own.values())
    assert main[1] > 0.5 * whole
    assert sum(cost for name, cost in own.items() if name.startswith("shares.lua:heavy ")) > 0.3 * whole


def test_perf(record, inferno):
    check(inferno.perf_totals(record("perf")))


def runs_of_collection(samples):
    """Begin and end, in ms, of each row of consecutive samples in the collector."""
    runs, before = [], False
    for sample in samples:
        collects = sample["vm_state"] == "gc"
        if collects and before:
            runs[-1][1] = sample["time_ns"] / 1e6
        elif collects:
            runs.append([(sample["time_ns"] - sample["cpu_ns"]) / 1e6, sample["time_ns"] / 1e6])
        before = collects
    return runs


def test_firefox_marks_what_luajit_does(tmp_path, firefox):
    recording = tmp_path / "garbage.ljspy"
    with ljspy.program("luajit", "garbage", jit="off") as target:
        result = ljspy.run("record", "-p", target.pid, "-d", "1s", "-r", ljspy.HIGH_RATE, "-o", recording)
    assert result.returncode == ljspy.OK, result.stderr
    for form in ("json", "firefox"):
        assert ljspy.run("report", recording, "-f", form, "-o", tmp_path / f"profile.{form}").returncode == ljspy.OK
    expected = runs_of_collection(Json(tmp_path / "profile.json").document["samples"])
    assert len(expected) > 10
    firefox.open(tmp_path / "profile.firefox")
    (thread,) = firefox.threads()
    (marked,) = firefox.markers(thread)
    assert marked["markerName"] == "garbage collection" and marked["count"] == len(expected)
    lengths = [end - begin for begin, end in expected]
    assert marked["durationStats"]["avg"] == pytest.approx(sum(lengths) / len(lengths), rel=1e-3)
    assert marked["durationStats"]["max"] == pytest.approx(max(lengths), rel=1e-3)
