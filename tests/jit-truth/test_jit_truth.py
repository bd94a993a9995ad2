# SPDX-License-Identifier: MIT
"""A short `make jit-truth` of one build: no caller marked as exact is wrong, and enough
lines and functions are right."""

import pathlib

import pytest

import judge
import ljspy
import run

SAMPLE = ljspy.LJSPY.parent / "tests/jit-truth/sample"
BUILD = "2022, GC64"
LEAST = {"callers": 90, "function": 90, "line": 75}

pytestmark = pytest.mark.builds


@pytest.fixture(scope="module")
def luajit():
    if not SAMPLE.exists():
        pytest.skip(f"{SAMPLE} is not built")
    try:
        return run.build(ljspy.ROOT / "build/jit-truth", BUILD, *run.BUILDS[BUILD])
    except run.packages.Unavailable as reason:
        pytest.skip(f"its source package is not to be had: {reason}")


@pytest.mark.parametrize("program", run.PROGRAMS)
def test_frames_in_compiled_code(luajit, program, tmp_path):
    count, counts, misses = run.sample(luajit, program, SAMPLE, pathlib.Path(tmp_path))
    shares = {column: 100 * counts[column] / count for column in judge.COLUMNS}
    print(shares, misses.most_common(10))
    assert counts["wrong caller said exact"] == 0
    assert shares["wrong leaf said exact"] <= run.WRONG_LEAVES_MAX
    for column, least in LEAST.items():
        assert shares[column] >= least, column
