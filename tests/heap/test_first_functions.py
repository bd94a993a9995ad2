# SPDX-License-Identifier: MIT
"""A coroutine has its first function in its path, as far as that can be known."""

import json

import pytest

import heaps
import ljspy

pytestmark = pytest.mark.usefixtures("built")

FIRSTS = heaps.HERE / "firsts.lua"


def counts(pid):
    """How many objects have each path, by its text from the name of the table on."""
    done = ljspy.run("heap", "-p", pid, "-f", "json", "-o", "-")
    assert done.returncode == ljspy.OK, done.stderr
    (vm,) = json.loads(done.stdout)["processes"][0]["vms"]
    return {row["path"].replace(f" of main chunk {FIRSTS}", ""): row["count"] for row in vm["paths"]}


def test_paths_have_the_first_function(runtime):
    with ljspy.Target([ljspy.luajit(runtime), FIRSTS]).wait_ready() as target:
        ljspy.sleeps(target.pid)
        found = counts(target.pid)
    lists = {path: count for path, count in found.items() if path.startswith("local") and "[*]" in path}
    assert lists == {
        f'local "served"[*]: coroutine of function <{FIRSTS}:9>': 100,
        # Those that have made a tail call have no other any more.
        f'local "handed"[*]: coroutine of function <{FIRSTS}:14>': 50,
        f'local "handed"[*]: coroutine of function <{FIRSTS}:3>': 50,
        'local "protected"[*]': 100,
    }
    assert "main thread" in found
    assert not any(path.startswith("main thread:") for path in found)
