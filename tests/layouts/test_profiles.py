"""Builds other than this system's are profiled as rightly as its own.

Each runs with the libraries of its own release, so that the executable is the
dynamic loader itself.
"""

import collections

import ljspy
import packages
import pytest
import stacks

pytestmark = pytest.mark.usefixtures("built")

# 32-bit references and snapshots without mcofs; the rolling releases after it.
SUITES = ("bullseye", "trixie", "sid")
NAMES = ("calls", "metamethods", "varargs", "coroutines", "protected", "shares", "builtins")
PROGRAMS = {program.name: program for program in stacks.all_programs()}


@pytest.fixture(params=SUITES)
def luajit(request):
    try:
        root = packages.tree(request.param, "luajit")
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    return [*packages.loader(root, root / "usr/bin/luajit")]


def run(luajit, name, jit):
    return ljspy.Target([*luajit, f"{name}.lua", jit, 50], cwd=stacks.PROGRAMS)


def record(luajit, name, jit, directory, **options):
    with run(luajit, name, jit).wait_ready() as target:
        return ljspy.record(directory, "-p", target.pid, seconds=1, **options)


@pytest.mark.parametrize("name", NAMES)
def test_stacks_are_legal(luajit, jit, name, tmp_path, request, note_lost):
    recording = record(luajit, name, jit, tmp_path)
    weights, wrong = collections.Counter(), []
    for sample in recording.samples:
        verdict = PROGRAMS[name].judge(sample)
        weights[verdict] += sample.weight
        if verdict == "wrong":
            wrong.append(";".join(sample.frames))
    note_lost(request.node.name.removeprefix("test_stacks_are_legal"), len(recording.samples), weights)
    total = sum(weights.values())
    lost_share, wrong_share = stacks.limits(jit, PROGRAMS[name])
    assert weights["wrong"] <= wrong_share * total, wrong
    assert weights["lost"] <= lost_share * total
    assert weights["whole"] >= stacks.WHOLE_SHARE * total


def test_recording_may_begin_before_the_first_trace(luajit, tmp_path):
    """What only traces can tell of the layout is found out once there are some."""
    recording = ljspy.record(
        tmp_path, "--", "env", "-C", stacks.PROGRAMS, *luajit, "shares.lua", "on", 2, seconds=10
    )
    shares = [s for s in recording.samples if s.frames and s.frames[0] == "main chunk shares.lua"]
    assert all(PROGRAMS["shares"].judge(sample) != "wrong" for sample in shares)
    assert ljspy.weight_of(shares, lambda sample: sample.compiled) > 0.5 * ljspy.weight_of(shares)
