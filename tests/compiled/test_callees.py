# SPDX-License-Identifier: MIT
"""Functions in compiled code have their own time, however they are called."""

import pathlib

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = pathlib.Path(__file__).parent / "callees.lua"
WAYS = (
    "field",
    "call_of_upvalue",
    "call_beside_builtin",
    "call_of_field",
    "call_of_global",
    "index_function",
    "stored_field",
    "stored_method",
    "stored_upvalue",
)


@pytest.mark.parametrize("way", WAYS)
def test_the_time_is_that_of_the_called_function(runtime, way, tmp_path):
    """Some 8 of 9 parts. What calls it calls another one, too, which has no part in it."""
    with ljspy.Target([ljspy.luajit(runtime), PROGRAM, way]) as target:
        target.wait_ready()
        samples = ljspy.record(tmp_path, "-p", target.pid).samples
    leaves = {name: ljspy.weight_of(samples, leaf_is_of(name)) for name in ("run", "work", "rest")}
    whole = ljspy.weight_of(samples)
    assert leaves["work"] > 0.6 * whole, (leaves, whole)
    assert ljspy.weight_of(samples, ljspy.has_frame("floor")) < 0.05 * whole
    assert ljspy.weight_of(samples, lambda sample: is_called_by(sample, "work", "rest")) < 0.05 * whole
    assert ljspy.weight_of(samples, lambda sample: is_called_by(sample, "rest", "work")) < 0.05 * whole


def leaf_is_of(chunk):
    return lambda sample: bool(sample.frames) and f" {chunk}:" in sample.frames[-1]


def is_called_by(sample, chunk, caller):
    return leaf_is_of(chunk)(sample) and any(f" {caller}:" in frame for frame in sample.frames[:-1])
