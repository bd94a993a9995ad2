# SPDX-License-Identifier: MIT
"""What a local variable of a running function holds has the same path at each look, whatever runs just then."""

import json
import re

import pytest

import heaps
import ljspy

pytestmark = pytest.mark.usefixtures("built")

RUNNING = heaps.HERE / "running.lua"
LOOKS = 20


def lines_of(name):
    """Where the function with this local name is defined."""
    for number, line in enumerate(RUNNING.read_text().splitlines(), 1):
        if line.startswith(f"local function {name}("):
            return number
    raise AssertionError(name)


def place(function):
    return re.compile(rf'local "cache" of (?:{function} |function <)\S*running\.lua:{lines_of(function)}>?')


def paths_of_caches(pid):
    """The paths of the table that has most entries, with what it holds."""
    done = ljspy.run("heap", "-p", pid, "--max-pause", "5s", "-f", "json", "-o", "-")
    assert done.returncode == 0, done.stderr
    (vm,) = json.loads(done.stdout)["processes"][0]["vms"]
    rows = [row for row in vm["paths"] if row["path"].endswith("[*]")]
    return max(rows, key=lambda row: row["count"])["path"]


@pytest.mark.parametrize("way, function", [("loop", "loop"), ("called", "called"), ("builtins", "builtins"),
                                           ("coroutine", "leak"), ("resumer", "resumer"), ("waits", "waits")])
def test_all_looks_find_the_same_path(runtime, jit, way, function):
    with ljspy.Target([ljspy.luajit(runtime), f"-j{jit}", RUNNING, way]) as target:
        target.wait_ready()
        found = {paths_of_caches(target.pid) for _ in range(LOOKS)}
    print(found)
    wanted = place("builtins" if way == "builtins" else function)
    assert len(found) == 1
    assert wanted.match(found.pop())


@pytest.mark.parametrize("way", ["loop", "waits"])
def test_a_series_names_the_path_that_grows(runtime, jit, way):
    with ljspy.Target([ljspy.luajit(runtime), f"-j{jit}", RUNNING, way]) as target:
        target.wait_ready()
        done = ljspy.run("heap", "-p", target.pid, "--max-pause", "5s", "--every", "1s", "--for", "4s", timeout=120)
    print(done.stdout, done.stderr)
    assert "No path grew" not in done.stdout
    assert place(way).search(done.stdout)
