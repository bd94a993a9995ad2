# SPDX-License-Identifier: MIT
"""Every sample of every program is a legal stack, or says that it is not whole."""

import collections
import re

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

BUSY = [program for program in stacks.all_programs() if program.name != "idle"]


def verdicts_by_weight(program, samples):
    weights, wrong = collections.Counter(), []
    for sample in samples:
        verdict = program.judge(sample)
        weights[verdict] += sample.weight
        if verdict == "wrong":
            wrong.append(";".join(sample.frames))
    return weights, wrong


@pytest.mark.parametrize("program", BUSY, ids=lambda p: p.name)
def test_stacks_are_legal(runtime, jit, program, tmp_path, note_lost):
    with ljspy.program(runtime, program.name, jit) as target:
        recording = ljspy.record(tmp_path, "-p", target.pid, seconds=0.5, rate=ljspy.HIGHEST_RATE)
    weights, wrong = verdicts_by_weight(program, recording.samples)
    note_lost(f"{program.name}, {runtime}, jit {jit}", len(recording.samples), weights)
    total = sum(weights.values())
    lost_share, _ = stacks.limits(jit, program)
    lost = sum(recording.stats["lost"].values())
    assert not wrong, wrong
    assert lost <= max(lost_share * recording.stats["samples"], stacks.LOST_SAMPLES)
    assert weights["whole"] >= stacks.WHOLE_SHARE * total
    if jit == "off":
        assert not any(sample.compiled for sample in recording.samples)


def test_compiled_code_is_marked(runtime, tmp_path):
    with ljspy.program(runtime, "main", "on") as target:
        recording = ljspy.record(tmp_path, "-p", target.pid, seconds=1)
    compiled = ljspy.weight_of(recording.samples, lambda sample: sample.compiled)
    assert compiled > 0.5 * ljspy.weight_of(recording.samples)


TRACE = re.compile(r"trace#\d+ (side of #\d+ )?traces\.lua:\d+ \[jit\]")


def test_traces_are_shown(runtime, tmp_path):
    """Traces stand on the functions they were compiled from; root and side traces differ."""
    with ljspy.program(runtime, "traces", "on") as target:
        ljspy.record(tmp_path, "-p", target.pid, seconds=1, options=["--traces"])
    shown = [line.rpartition(" ")[0].split(";") for line in (tmp_path / "profile.folded").read_text().splitlines()]
    traces = {frame for stack in shown for frame in stack if frame.endswith(" [jit]")}
    assert all(TRACE.match(frame) or "harness.lua:" in frame for frame in traces), traces
    assert {bool(TRACE.match(frame)[1]) for frame in traces if TRACE.match(frame)} == {True, False}
    for stack in shown:
        for below, frame in zip(stack, stack[1:]):
            assert not frame.endswith(" [jit]") or below.endswith((stacks.COMPILED_MARK, "[builtin]", "unknown]")), stack


def test_lines(runtime, tmp_path):
    with ljspy.program(runtime, "lines", "off") as target:
        recording = ljspy.record(tmp_path, "-p", target.pid, seconds=1, options=["--lines"])
    assert not stacks.line_complaints(recording.samples, recording.stats["samples"])


def test_weights_are_the_cpu_time(runtime, jit, tmp_path):
    with ljspy.program(runtime, "shares", jit) as target:
        before = ljspy.cpu_ns(target.pid)
        recording = ljspy.record(tmp_path, "-p", target.pid, seconds=4)
        after = ljspy.cpu_ns(target.pid)
    total = ljspy.weight_of(recording.samples) / 1000
    assert total == pytest.approx(recording.stats["target_cpu_ms"], rel=0.02)
    assert total <= (after - before) / 1e6


def test_idle_target_gives_no_samples(runtime, tmp_path):
    picture = tmp_path / "idle.svg"
    with ljspy.program(runtime, "idle") as target:
        result = ljspy.run("record", "-p", target.pid, "-d", "1s", "-o", picture)
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert "There is no sample" in result.stderr
    assert not picture.exists()


def test_wall_clock_does_not_wake_a_sleeper(runtime, tmp_path):
    with ljspy.program(runtime, "idle") as target:
        before = ljspy.sleeps(target.pid)
        recording = ljspy.record(tmp_path, "-p", target.pid, seconds=1, options=["--clock", "wall"])
        assert ljspy.sleeps(target.pid) == before
    program = {p.name: p for p in stacks.all_programs()}["idle"]
    assert recording.samples
    assert all(sample.frames[-1] == "io.read [builtin]" for sample in recording.samples)
    assert all(program.judge(sample) != "wrong" for sample in recording.samples)


def test_statistics_are_honest(runtime, tmp_path):
    with ljspy.program(runtime, "calls", "off") as target:
        stats = ljspy.record(tmp_path, "-p", target.pid, seconds=1).stats
    assert stats["samples"] > 0
    assert stats["pause_us"]["p50"] <= stats["pause_us"]["p90"] <= stats["pause_us"]["p99"] <= stats["pause_us"]["max"]
    assert stats["self_cpu_ms"] > 0
    assert stats["missed_ticks"] >= 0
    assert isinstance(stats["lost"], dict)
    assert {"rate_hz", "frames", "target_cpu_ms"} <= stats.keys()


def test_no_frame_of_5000_is_left_out(runtime, tmp_path):
    with ljspy.program(runtime, "deep", "off") as target:
        recording = ljspy.record(tmp_path, "-p", target.pid, seconds=1)
    depth = max(sum(frame.startswith("dig ") for frame in sample.frames) for sample in recording.samples)
    assert depth == 5000


def test_launched_command(runtime, jit, tmp_path):
    program = stacks.PROGRAMS / "shares.lua"
    recording = ljspy.record(
        tmp_path, "--", "env", "-C", stacks.PROGRAMS, ljspy.luajit(runtime), program.name, jit, 1, seconds=10
    )
    shares = {p.name: p for p in stacks.all_programs()}["shares"]
    # ljspy records from the first instruction on: before the main chunk there is only native code.
    lua = [sample for sample in recording.samples if sample.frames]
    assert lua
    assert all(shares.judge(sample) != "wrong" for sample in lua if sample.frames[0] == "main chunk shares.lua")
    assert ljspy.weight_of(lua, ljspy.has_frame("foo")) > 0
