# SPDX-License-Identifier: MIT
"""The benchmarks run to their end and calculate correctly. The tests do not judge what
they measure."""

import json
import subprocess
import sys

import against
import ljspy
import measure
import pytest
import scale


@pytest.mark.usefixtures("built")
def test_a_part_of_them(tmp_path):
    bench = ljspy.ROOT / "tests/bench/bench.py"
    argv = [sys.executable, bench, "--parts", "start", "--pairs", "1", "--programs", tmp_path, "--directory", tmp_path]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "bench.json").read_text())["rows"]
    assert [row["what"] for row in rows if row["value"] <= 0] == []
    assert all(row["what"] in done.stdout for row in rows)


def test_curves_are_judged_by_how_they_grow():
    sizes = (10, 100, 1000, 10000)
    # A constant part hides the growth at first.
    assert scale.steepest(sizes, [100 + size for size in sizes]) < scale.STEEPEST
    assert scale.steepest(sizes, [120, 90, 110, 100]) < scale.STEEPEST
    assert scale.steepest(sizes, [100 + size**2 / 1e4 for size in sizes]) > scale.STEEPEST
    assert scale.steepest(sizes, [size**2 for size in sizes]) > scale.STEEPEST


def test_what_pairs_do_not_agree_on_is_the_same():
    assert against.verdict([1.1] * 7) == "slower"
    assert against.verdict([0.9] * 7) == "quicker"
    assert against.verdict([1.1] * 6 + [0.99]) == "the same"
    assert against.verdict([1.1] * 10 + [0.99]) == "slower"
    assert against.verdict([0.9] * 9 + [1.01] * 2) == "the same"


def test_figures_are_medians_of_ratios_of_neighbours():
    row = measure.Row("work", "s", [2, 4, 12], {"alone": [1, 4, 4], "floor": [2, 2, 3]}, 1.5)
    assert row.value == 2
    assert row.cells() == ["work", "4 s", "2.000 × alone (4), 1.500 to 2.500; 2.000 × floor (2), 1.500 to 3.000", "≤ 1.5 ×"]


def test_a_setting_is_compared_with_what_was_before_and_after_it():
    alone = iter(range(0, 100, 2))
    found = measure.interleaved("ab", lambda setting: next(alone) if setting is None else setting, 2)
    # In turn: a b, then b a.
    assert found == {"a": [("a", 1), ("a", 7)], "b": [("b", 3), ("b", 5)]}
