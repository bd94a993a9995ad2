# SPDX-License-Identifier: MIT
"""A heap's objects, sizes and references are those that the program tells of itself.

On every build of Debian's releases, with the collector in every state, with and without JIT.
HEAP_GRAPHS says how many graphs in all; `make heap-truth` sets it.
"""

import os

import pytest

import heaps

pytestmark = pytest.mark.usefixtures("built")

GRAPHS = int(os.environ.get("HEAP_GRAPHS", "60"))
# How many steps the collector takes: from a pause through marking, sweeping and finalizers.
STATES = ("stop", "0", "1", "2", "4", "8", "16", "32")
JIT = (["-joff"], ["-jon"])


def prepared(build):
    try:
        return build.prepare()
    except heaps.builds.packages.Unavailable as error:
        return pytest.skip(str(error))


@pytest.mark.parametrize("build", heaps.BUILDS, ids=str)
def test_a_heap_is_what_its_program_says(build, tmp_path):
    run, states = prepared(build), set()
    for number in range(GRAPHS // len(heaps.BUILDS)):
        seed = 1 + number * 7919
        state = STATES[number % len(STATES)]
        heap, told = heaps.run_graph(run, tmp_path, seed, 20 + number * 37 % 600, JIT[number // len(STATES) % 2], state)
        states.add(heap.state)
        assert heap.sum == heap.total, (seed, state)
        assert heap.uncertain == 0
        assert not heaps.wrong(heap, told), (seed, state)
    assert len(states) > 1


def judge_some(build, directory):
    run = prepared(build)
    for number, state in enumerate(("stop", "8", "32")):
        heap, told = heaps.run_graph(run, directory, 1 + number * 7919, 100 + 50 * number, [], state)
        assert heap.sum == heap.total, state
        assert heap.uncertain == 0
        assert not heaps.wrong(heap, told), state


@pytest.mark.parametrize("build", heaps.OTHER_BUILDS, ids=str)
def test_a_heap_within_another_program(build, tmp_path):
    judge_some(build, tmp_path)


@pytest.mark.builds
@pytest.mark.parametrize("build", heaps.builds.SOURCES, ids=str)
def test_a_heap_of_a_build_with_options(build, tmp_path):
    judge_some(build, tmp_path)
