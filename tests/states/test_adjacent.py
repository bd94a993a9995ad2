# SPDX-License-Identifier: MIT
"""Without a stop, only its native stack tells which state a thread runs. Stacks of several threads may be one
mapping, and the frames of several states may be on one stack."""

import pytest

import ljspy
import stacks
from test_states import compiled

pytestmark = pytest.mark.usefixtures("built")


@pytest.fixture(scope="module")
def adjacent(tmp_path_factory):
    return compiled("adjacent", tmp_path_factory.mktemp("adjacent"))


def shares(adjacent, what, directory):
    """The share of CPU time of each function, and what is lost."""
    with ljspy.Target([adjacent, what, 30]).wait_ready() as target:
        samples = ljspy.record(directory, "-p", target.pid, seconds=3, options=["--no-stop"]).samples
    total = ljspy.weight_of(samples)
    assert total
    names = ["busy_1", "busy_3", "sleeps_0", "sleeps_2", "sleeps_4", "outer_calls", "inner_works"]
    found = {name: ljspy.weight_of(samples, ljspy.has_frame(name)) / total for name in names}
    found["lost"] = ljspy.weight_of(samples, lambda sample: all(map(stacks.is_lost, sample.frames))) / total
    found["marked"] = ljspy.weight_of(samples, lambda sample: sample.frames[0] == "[lost: not stopped]") / total
    print(found)
    return found


def test_threads_whose_stacks_are_one_mapping_are_told_apart(adjacent, tmp_path):
    found = shares(adjacent, "threads", tmp_path)
    assert not any(found[f"sleeps_{number}"] for number in (0, 2, 4))
    assert found["busy_1"] > 0.2 and found["busy_3"] > 0.2
    assert found["lost"] < 0.1


@pytest.mark.parametrize("first", ["outer", "inner"])
def test_a_state_within_another_is_the_one_that_runs(first, adjacent, tmp_path):
    """Whichever was made first. Its callers are in the other state, or said to be unknown."""
    found = shares(adjacent, first, tmp_path)
    assert found["inner_works"] > 0.9
    assert found["outer_calls"] + found["marked"] > 0.9
