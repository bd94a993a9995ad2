# SPDX-License-Identifier: MIT
"""The kernel gives the id of a thread that has ended to another one, of the same process, too."""

import json
import re

import pytest

import ljspy
from test_states import compiled

pytestmark = pytest.mark.usefixtures("built")


@pytest.fixture(scope="module")
def reused(tmp_path_factory):
    return compiled("reused", tmp_path_factory.mktemp("reused"))


@pytest.mark.parametrize("clock", ["cpu", "wall"])
def test_each_thread_of_an_id_has_its_own_time(clock, reused, tmp_path):
    path = tmp_path / "reused.ljspy"
    options = ["--clock", "wall"] if clock == "wall" else []
    result = ljspy.run("record", "-r", ljspy.HIGH_RATE, *options, "-o", path, "--", reused)
    assert result.returncode == ljspy.OK, result.stderr
    if "no such id" in result.stdout:
        pytest.skip("the kernel gives an id again only to those who may choose it")
    truth = {name: (int(cpu), int(there)) for name, cpu, there in re.findall(r"(\w+_job) (\d+) (\d+)", result.stdout)}
    assert len(truth) == 2, result.stdout
    document = json.loads(ljspy.run("report", path, "-f", "json", "-o", "-").stdout)
    functions = [document["functions"][frame["function"]]["name"] for frame in document["frames"]]
    jobs = [{name for name in truth for frame in stack if name in functions[frame]} for stack in document["stacks"]]
    samples = [(sample, jobs[sample["stack"]]) for sample in document["samples"]]
    assert all(len(found) <= 1 for _, found in samples)
    for name, (cpu, _) in truth.items():
        seen = sum(sample["cpu_ns"] for sample, found in samples if name in found) / 1e6
        print(f"{name}: {seen:.0f} ms of {cpu}")
        assert 0.8 * cpu < seen < 1.1 * cpu
    if clock == "wall":
        threads = {sample["thread"] for sample, found in samples if found}
        told = sum(sample["wall_ns"] for sample, _ in samples if sample["thread"] in threads) / 1e6
        there = sum(there for _, there in truth.values())
        print(f"there for {there} ms, told {told:.0f}")
        assert 0.8 * there < told < 1.1 * there
