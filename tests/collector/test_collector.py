# SPDX-License-Identifier: MIT
"""What the collector works on, against a program that knows how long it took."""

import gzip
import json
import math
import os
import pathlib
import re

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).resolve().parent

SECONDS = max(2, int(os.environ.get("BUSY_SECONDS", 0)))

# Programs, and where their builds keep gc.state.
PROGRAMS = {
    "luajit": (ljspy.luajit("luajit"), 33),
    "luajit2": (ljspy.luajit("luajit2"), 33),
    "gc32": (ljspy.PACKAGES / "bullseye/luajit/usr/bin/luajit", 41),
}

# The program's states by their numbers, and the phases that are theirs.
PHASES = {"1": ("mark", "atomic"), "3": ("sweep strings",), "4": ("sweep",), "5": ("finalize",)}

# Beyond sampling noise: the program starts, and reads its clock between states.
SHARE = 0.03


def report(path, *options):
    result = ljspy.run("report", path, *options)
    assert result.returncode == ljspy.OK, result.stderr
    return result.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_phases(program, jit, tmp_path):
    path, gc_state = PROGRAMS[program]
    if not path.exists():
        pytest.skip(f"{path} is not to be had")
    recording = tmp_path / "phases.ljspy"
    result = ljspy.run("record", "-r", ljspy.HIGH_RATE, "-o", recording, "--",
                       path, HERE / "phases.lua", jit, SECONDS, gc_state, timeout=120 + 20 * SECONDS)
    assert result.returncode == ljspy.OK, result.stderr
    truth = {key: float(value) for key, value in re.findall(r"^(\w+) ([\d.e-]+)$", result.stdout, re.MULTILINE)}
    assert all(truth[state] > 0.01 * truth["all"] for state in PHASES), truth

    samples = json.loads(report(recording, "-f", "json"))["samples"]
    total = sum(sample["cpu_ns"] for sample in samples)
    squares = sum(sample["cpu_ns"] ** 2 for sample in samples)
    print(f"{program}, jit {jit}: {len(samples)} samples")
    for state, phases in PHASES.items():
        expected = truth[state] / truth["all"]
        seen = sum(sample["cpu_ns"] for sample in samples if sample.get("gc_phase") in phases) / total
        noise = math.sqrt(expected * (1 - expected) * squares) / total
        print(f"{phases[0]}: {expected:.3f} of its time, {seen:.3f} seen")
        assert abs(seen - expected) <= SHARE + 4 * noise, (phases, expected, seen)

    # The words and sums of the report are those of the samples.
    text = report(recording, "--by", "gc-phase")
    groups = re.findall(r"^ *[\d.]+ ± [\d.]+ +([\d.]+)  ([a-z ]+)$", text.split("collector\n")[0], re.MULTILINE)
    for phase in ("no collection", *(name for names in PHASES.values() for name in names)):
        weight = sum(sample["cpu_ns"] for sample in samples if sample.get("gc_phase", "no collection") == phase)
        shown = [float(ms) for ms, name in groups if name == phase]
        assert sum(shown) == pytest.approx(weight / 1e6, abs=0.2), (phase, text[:2000])
    cycles, least, most = re.search(r"(\d+) cycles seen, of a heap from ([\d.]+) to ([\d.]+) MB", text).groups()
    assert 0 < int(cycles) <= truth["cycles"] + 3  # LuaJIT itself may begin with one or two
    # A sample may come as the program begins, with a heap of some kilobytes.
    assert 0 <= float(least) < float(most) and 1 < float(most) < 100


ALLOCATES_AND_COMPUTES = """
local function allocates() local kept = {} for i = 1, 200 do kept[i] = function() return i end end return kept end
local function computes() local sum = 0 for i = 1, 3000 do sum = sum + i % 7 end return sum end
local finish = os.clock() + 2
while os.clock() < finish do allocates() computes() end
"""


def test_functions_in_which_it_runs(tmp_path):
    """Steps of the collector run where something is allocated: never in a function that only computes."""
    recording, program = tmp_path / "functions.ljspy", tmp_path / "functions.lua"
    program.write_text(ALLOCATES_AND_COMPUTES)
    result = ljspy.run("record", "-r", ljspy.HIGH_RATE, "-o", recording, "--", ljspy.luajit("luajit"), program,
                       timeout=60)
    assert result.returncode == ljspy.OK, result.stderr
    text = report(recording)
    phases, functions = text.split("collector\n")[1], text.split("the collector ran in\n")[1].split("\n\n")[0]
    rows = [(float(ms), name) for ms, name in
            re.findall(r"^ *[\d.]+ ± [\d.]+ +([\d.]+)  (.*)$", functions, re.MULTILINE)]
    assert rows and rows[0][1].startswith("allocates "), text[:2000]
    assert not any(name.startswith("computes ") for _, name in rows), functions
    collector = sum(float(ms) for ms in re.findall(r"^ *[\d.]+ ± [\d.]+ +([\d.]+)  [a-z ]+$",
                                                   phases.split("\n\n")[0], re.MULTILINE))
    assert sum(ms for ms, _ in rows) == pytest.approx(collector, rel=0.05), text[:2000]


def test_what_was_allocated_is_not_told_of_some_samples(tmp_path):
    """Each sample tells what was since the one before it, which may be left out."""
    program = tmp_path / "rests.lua"
    program.write_text("local rest = require('ffi')\nrest.cdef('int usleep(unsigned);')\nfor i = 1, 3 do\n" +
                       ALLOCATES_AND_COMPUTES.replace("+ 2", "+ 0.5") + "rest.C.usleep(20000) end")
    # A recording with --off-cpu has all samples: who reads it chooses.
    for options, in_text, in_recording in (((), True, True), (("--off-cpu",), False, True),
                                           (("--blocked", "--threshold", "1ms"), False, False)):
        for output in ("text", "recording.ljspy"):
            as_text = ["-f", "text"] if output == "text" else []
            result = ljspy.run("record", *options, *as_text, "-o", tmp_path / output,
                               "--", ljspy.luajit("luajit"), program, timeout=120)
            assert result.returncode == ljspy.OK, result.stderr
        for told, text in ((in_text, (tmp_path / "text").read_text()),
                           (in_recording, report(tmp_path / "recording.ljspy"))):
            found = re.search(r"^(About|At least) .* allocated", text, re.MULTILINE)
            assert bool(found) == told, (options, text[:2000])


@pytest.mark.parametrize("program", PROGRAMS)
def test_steps_are_no_longer_than_they_are(program, tmp_path):
    """A step that samples meet is a part of a call of collectgarbage(), and they meet most of one of them."""
    path, _ = PROGRAMS[program]
    if not path.exists():
        pytest.skip(f"{path} is not to be had")
    recording = tmp_path / "steps.ljspy"
    result = ljspy.run("record", "-r", ljspy.HIGH_RATE, "-o", recording, "--", path, HERE / "steps.lua", SECONDS,
                       timeout=120 + 20 * SECONDS)
    assert result.returncode == ljspy.OK, result.stderr
    truth = [(float(begin), float(end)) for begin, end in re.findall(r"^step ([\d.]+) ([\d.]+)$", result.stdout, re.MULTILINE)]
    assert len(truth) >= 3, result.stdout
    document = json.loads(report(recording, "-f", "json"))
    start = document["session"]["start_unix_ns"] / 1e9
    steps = [(start + (sample["time_ns"] - sample["gc_step_ns"]) / 1e9, start + sample["time_ns"] / 1e9)
             for sample in document["samples"] if "gc_step_ns" in sample]
    assert steps
    # Samples have the time at which ljspy goes on, and on a busy machine that may be late.
    too_long = [(begin, end) for begin, end in steps
                if not any(end - begin <= last - first + 1e-4 and begin <= last + 0.2 and end >= first
                           for first, last in truth)]
    longest, seen = max(last - first for first, last in truth), max(end - begin for begin, end in steps)
    print(f"{program}: {len(truth)} collections, {len(steps)} samples in a step, {longest:.3f} s, {seen:.3f} s seen")
    assert not too_long
    # While others have the CPU, samples see nothing.
    parts = [(end - begin) / (last - first) for begin, end in steps for first, last in truth
             if begin >= first - 0.001 and begin <= last]
    assert max(parts) > 0.5
    shown = report(recording).split("longest steps of the collector")[1].split("\n")[1]
    assert float(shown.split()[0]) == pytest.approx(seen * 1000, abs=0.06) and "collect " in shown


def test_recordings_of_version_2_lack_phases():
    text = report(HERE / "version-2.ljspy", "--by", "gc-phase")
    groups = text.split("gc-phase\n")[1].split("\n\n")[0]
    assert " unknown" in groups and " no collection" in groups and " sweep" not in groups, groups
    assert "cycles seen" not in text
    samples = json.loads(report(HERE / "version-2.ljspy", "-f", "json"))["samples"]
    assert {sample.get("gc_phase") for sample in samples if sample["vm_state"] == "gc"} == {"unknown"}
    assert all("gc_phase" not in sample for sample in samples if sample["vm_state"] != "gc")
    assert all("heap_bytes" not in sample for sample in samples)


def test_phases_are_labels(tmp_path):
    """For go tool pprof -tagfocus."""
    profile = tmp_path / "garbage.pb.gz"
    with ljspy.program("luajit", "garbage") as target:
        result = ljspy.run_beside(target.pid, 0.5, "record", "-r", ljspy.HIGH_RATE, "-o", profile, "-p", target.pid)
    assert result.returncode == ljspy.OK, result.stderr
    raw = gzip.decompress(profile.read_bytes())
    assert b"gc_phase" in raw and b"mark" in raw
