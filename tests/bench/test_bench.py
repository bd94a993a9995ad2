"""The benchmarks run to their end. What they measure is no test's affair."""

import json
import subprocess
import sys

import ljspy
import pytest


@pytest.mark.usefixtures("built")
def test_a_part_of_them(tmp_path):
    bench = ljspy.ROOT / "tests/bench/bench.py"
    argv = [sys.executable, bench, "--parts", "start", "--pairs", "1", "--programs", tmp_path, "--directory", tmp_path]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "bench.json").read_text())["rows"]
    assert [row["what"] for row in rows if row["value"] <= 0] == []
    assert all(row["what"] in done.stdout for row in rows)
