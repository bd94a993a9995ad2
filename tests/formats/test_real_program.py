# SPDX-License-Identifier: MIT
"""A real program, recorded in each format and read by the program the format is for."""

import pytest

import ljspy
import stacks
from readers import TEST_SECONDS, Json, dotted, parse_folded, totals_of_stacks

pytestmark = [pytest.mark.usefixtures("built"), pytest.mark.timeout(TEST_SECONDS)]

PROGRAM = stacks.Program(stacks.PROGRAMS / "shares.lua")


@pytest.fixture
def record(tmp_path):
    def record(form):
        path = tmp_path / f"profile.{form}"
        with ljspy.program("luajit", PROGRAM.name, jit="off") as target:
            result = ljspy.run_beside(target.pid, 0.5, "record", "-p", target.pid, "-r", ljspy.HIGH_RATE, "-f", form,
                                      "-o", path)
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


def runs_of(samples, member, value, time):
    """Begin and end, in ms, of each row of samples of which MEMBER has this value, without longer gaps."""
    runs, before = [], False
    for sample in samples:
        does = sample[member] == value
        if does and before and sample["time_ns"] <= runs[-1][1] * 1e6 + 5 * sample[time]:
            runs[-1][1] = sample["time_ns"] / 1e6
        elif does:
            runs.append([(sample["time_ns"] - sample[time]) / 1e6, sample["time_ns"] / 1e6])
        before = does
    return runs


def check_markers(directory, firefox, recording, name, *which, least=10):
    """Each row of such samples has a marker of this name, and nothing else has one."""
    for form in ("json", "firefox"):
        assert ljspy.run("report", recording, "-f", form, "-o", directory / f"profile.{form}").returncode == ljspy.OK
    expected = runs_of(Json(directory / "profile.json").document["samples"], *which)
    assert len(expected) >= least
    firefox.open(directory / "profile.firefox")
    (thread,) = firefox.threads()
    (marked,) = firefox.markers(thread)
    assert marked["markerName"] == name and marked["count"] == len(expected)
    lengths = [end - begin for begin, end in expected]
    assert marked["durationStats"]["avg"] == pytest.approx(sum(lengths) / len(lengths), rel=1e-3)
    assert marked["durationStats"]["max"] == pytest.approx(max(lengths), rel=1e-3)


def test_firefox_marks_what_blocks(tmp_path, firefox):
    recording = tmp_path / "blocked.ljspy"
    code = """jit.off() local pipe = io.popen("while sleep 0.02; do echo; done") print("ready") io.flush()
        while true do pipe:read() for i = 1, 3e5 do end end"""
    with ljspy.Target([ljspy.luajit("luajit"), "-e", code]) as target:
        target.wait_ready()
        # Beside others, the program gets to less in a second.
        arguments = ["record", "-p", target.pid, "-d", f"{ljspy.RECORDING_SECONDS}s", "--clock", "wall", "-r", "499"]
        result = ljspy.run_beside(target.pid, 0.3, *arguments, "-o", recording)
    assert result.returncode == ljspy.OK, result.stderr
    check_markers(tmp_path, firefox, recording, "blocked", "state", "blocked", "wall_ns", least=3)


def test_firefox_marks_what_luajit_does(tmp_path, firefox):
    recording = tmp_path / "garbage.ljspy"
    with ljspy.program("luajit", "garbage", jit="off") as target:
        result = ljspy.run_beside(target.pid, 1, "record", "-p", target.pid, "-r", ljspy.HIGH_RATE, "-o", recording)
    assert result.returncode == ljspy.OK, result.stderr
    check_markers(tmp_path, firefox, recording, "garbage collection", "vm_state", "gc", "cpu_ns")
