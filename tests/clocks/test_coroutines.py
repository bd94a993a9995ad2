# SPDX-License-Identifier: MIT
"""Where yielded coroutines wait."""

import json
import pathlib

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = pathlib.Path(__file__).resolve().parent / "parked.lua"


def report(recording, *options):
    result = ljspy.run("report", recording, "-f", "folded", *options)
    assert result.returncode == ljspy.OK, result.stderr
    return stacks.parse_folded(result.stdout)


def test_each_place_has_the_time_that_coroutines_wait_there(tmp_path):
    recording = tmp_path / "parked.ljspy"
    with ljspy.Target([ljspy.luajit("luajit"), PROGRAM, 20]).wait_ready() as target:
        result = ljspy.run("record", "--coroutines", "-d", "2s", "-o", recording, "-p", target.pid)
    assert result.returncode == ljspy.OK, result.stderr
    samples = report(recording, "--lines", "--state", "parked")
    waits = {line: ljspy.weight_of(samples, lambda sample: any(f"parked.lua:{line}" in frame for frame in sample.frames))
             for line in (9, 13)}  # fmt: skip
    # Each look finds all of them, so shares are exact, except while one is resumed.
    assert waits[9] / waits[13] == pytest.approx(3, rel=0.05)
    assert ljspy.weight_of(samples) == waits[9] + waits[13]
    assert all("coroutine.yield" in sample.frames[-1] for sample in samples)
    assert samples == report(recording, "--lines")
    modules = report(recording, "--by", "module")
    assert ljspy.weight_of(modules) == ljspy.weight_of(samples)
    assert {sample.frames[0] for sample in modules} == {str(PROGRAM.with_suffix(""))}


def test_times_count_from_the_beginning(tmp_path):
    """A sample of all that wait stands for more time than has passed. Its own time is of the recording."""
    recording = tmp_path / "parked.ljspy"
    with ljspy.Target([ljspy.luajit("luajit"), PROGRAM, 20]).wait_ready() as target:
        result = ljspy.run("record", "--coroutines", "-d", "2s", "-o", recording, "-p", target.pid)
    assert result.returncode == ljspy.OK, result.stderr
    document = json.loads(ljspy.run("report", recording, "-f", "json").stdout)
    first = document["samples"][0]
    assert first["wall_ns"] > first["time_ns"]
    assert first["time_ns"] < document["session"]["duration_ns"]
    firefox = json.loads(ljspy.run("report", recording, "-f", "firefox").stdout)
    assert firefox["meta"]["startTime"] == pytest.approx(document["session"]["start_unix_ns"] / 1e6)
    times = sorted(time for thread in firefox["threads"] for time in thread["samples"]["time"])
    assert times[0] == pytest.approx(first["time_ns"] / 1e6)


def test_nothing_waits_where_nothing_has_yielded(tmp_path):
    recording = tmp_path / "busy.ljspy"
    with ljspy.busy() as target:
        result = ljspy.run("record", "--coroutines", "-d", "1s", "-o", recording, "-p", target.pid)
    assert result.returncode == ljspy.OK, result.stderr
    assert recording.stat().st_size > 0
    assert report(recording) == []
