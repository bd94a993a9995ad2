"""A real program, recorded in each format and read by what the format is for."""

import pytest

import ljspy
import stacks
from readers import Json, parse_folded, totals_of_stacks

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = stacks.Program(stacks.PROGRAMS / "calls.lua")


@pytest.fixture
def record(tmp_path):
    def record(form):
        path = tmp_path / f"profile.{form}"
        with ljspy.program("luajit", PROGRAM.name, jit="off") as target:
            result = ljspy.run("record", "-p", target.pid, "-d", "500ms", "-r", ljspy.HIGH_RATE, "-f", form, "-o", path)
        assert result.returncode == ljspy.OK, result.stderr
        return path

    return record


def check(totals):
    """The program runs its main chunk and nothing else, in which it spins most of the time."""
    whole = sum(own for own, _ in totals.values())
    assert whole > 0
    assert totals[f"main chunk {PROGRAM.path.name}"][1] > 0.95 * whole
    spin = [own for name, (own, _) in totals.items() if name.startswith("spin harness.lua:")]
    assert sum(spin) > 0.3 * whole


def test_json(record):
    document = Json(record("json"))
    check(document.totals())
    times = [sample["time_ns"] for sample in document.document["samples"]]
    assert times == sorted(times) and times[0] >= 0


def test_folded(record, inferno):
    check(inferno.folded_totals(record("folded")))


def test_pprof(record, pprof):
    check(pprof.totals(record("pprof")))


def test_speedscope(record, speedscope):
    merged, threads = speedscope.totals(record("speedscope"))
    check(merged)
    assert merged == threads


def test_firefox(record, firefox):
    firefox.open(record("firefox"))
    check(firefox.totals())


def test_callgrind(record, callgrind):
    functions = [{"file": "calls.lua", "name": "main chunk calls.lua"}]
    path = record("callgrind")
    own = callgrind.costs(path)
    (main,) = callgrind.totals(path, functions).values()
    whole = sum(own.values())
    assert main[1] > 0.95 * whole
    assert sum(cost for name, cost in own.items() if name.startswith("harness.lua:spin ")) > 0.3 * whole


def test_perf(record, inferno):
    check(inferno.perf_totals(record("perf")))
