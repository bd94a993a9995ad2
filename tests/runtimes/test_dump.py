"""ljspy dump sees what a program sees of itself."""

import re

import pytest

import ljspy
import stacks

PARKING = [program.name for program in stacks.all_programs() if program.parks]


def agrees(dumped, patterns):
    """Whether a dumped stack is that of a traceback. A traceback of 5,000 frames
    leaves out the middle, that of a coroutine ends at its own first frame."""
    if None in patterns:
        gap = patterns.index(None)
        bottom = patterns[gap + 1 :]
        return agrees(dumped, patterns[:gap]) and agrees(dumped[-len(bottom) :], bottom)
    if patterns[-1].startswith("main chunk") and len(dumped) != len(patterns):
        return False
    return len(dumped) >= len(patterns) and all(map(re.fullmatch, patterns, dumped))


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("name", PARKING)
def test_dump_is_the_traceback(runtime, name):
    for target, _, traceback in ljspy.parks(runtime, name):
        result = ljspy.run("dump", "-p", target.pid)
        assert result.returncode == ljspy.OK, result.stderr
        # It waits in io.read, called on the line that made the traceback.
        patterns = [r"io\.read \[builtin\]"] + ljspy.parse_traceback(traceback)
        dumped = ljspy.parse_dump(result.stdout)
        assert any(agrees(stack, patterns) for stack in dumped), f"{traceback}\n{result.stdout}"


@pytest.mark.usefixtures("built")
def test_dump_of_5000_frames_leaves_none_out(runtime):
    with ljspy.program(runtime, "deep", "off", task="park") as target:
        target.read_until(b"\n\n")
        result = ljspy.run("dump", "-p", target.pid)
    assert result.returncode == ljspy.OK, result.stderr
    dumped = ljspy.parse_dump(result.stdout)
    assert max(sum(frame.startswith("dig ") for frame in stack) for stack in dumped) == 5000


@pytest.mark.usefixtures("built")
def test_dump_does_not_wake_a_sleeper(runtime):
    with ljspy.program(runtime, "idle") as target:
        before = ljspy.sleeps(target.pid)
        assert ljspy.run("dump", "-p", target.pid).returncode == ljspy.OK
        assert ljspy.sleeps(target.pid) == before


@pytest.mark.usefixtures("built")
def test_dump_of_a_busy_program(runtime, jit):
    program = {p.name: p for p in stacks.all_programs()}["shares"]
    with ljspy.program(runtime, "shares", jit) as target:
        result = ljspy.run("dump", "-p", target.pid)
    assert result.returncode == ljspy.OK, result.stderr
    (dumped,) = ljspy.parse_dump(result.stdout)
    assert dumped[-1].startswith("main chunk shares.lua:")
    lines = program.source.splitlines()
    for frame in dumped:
        if frame.endswith("[builtin]"):
            continue
        assert 1 <= int(frame.rpartition(":")[2].split("_")[0]) <= len(lines)
