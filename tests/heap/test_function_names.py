# SPDX-License-Identifier: MIT
"""A function keeps its name from look to look, whoever comes to hold it besides."""

import json

import pytest

import heaps
import ljspy

pytestmark = pytest.mark.usefixtures("built")

NAMES = heaps.HERE / "names.lua"
KEPT = heaps.HERE.parent / "recordings"
LOOKS = 3


def path_of_cache(pid):
    done = ljspy.run("heap", "-p", pid, "-f", "json", "-o", "-")
    assert done.returncode == ljspy.OK, done.stderr
    (vm,) = json.loads(done.stdout)["processes"][0]["vms"]
    return max((row for row in vm["paths"] if row["path"].endswith("[*]")), key=lambda row: row["count"])


def test_later_holders_rename_no_function(runtime):
    rows = []
    with ljspy.Target([ljspy.luajit(runtime), NAMES]).wait_ready() as target:
        for _ in range(LOOKS):
            ljspy.sleeps(target.pid)
            rows.append(path_of_cache(target.pid))
            target.write("more\n")
            target.wait_ready()
    assert [row["count"] for row in rows] == [1000 * number for number in range(1, LOOKS + 1)]
    assert len({row["path"] for row in rows}) == 1, rows
    assert rows[0]["path"].startswith('upvalue "cache" of function lookup '), rows


def test_a_builtin_that_holds_something_has_a_name(runtime):
    program = """
        held = {}
        for i = 1, 9 do
            held[i] = coroutine.wrap(function() coroutine.yield() end)
            held[i]()
        end
        print("ready")
        io.stdout:flush()
        io.read()"""
    with ljspy.Target([ljspy.luajit(runtime), "-e", program]).wait_ready() as target:
        done = ljspy.run("heap", "-p", target.pid, "-f", "json", "-o", "-")
    assert done.returncode == ljspy.OK, done.stderr
    (vm,) = json.loads(done.stdout)["processes"][0]["vms"]
    (row,) = [row for row in vm["paths"] if row["path"].startswith("_G.held[*]")]
    assert row["path"] == "_G.held[*]: coroutine.wrap_aux [builtin]" and row["count"] == 9


@pytest.mark.parametrize("version, told", [(1, True), (2, True), (None, False)])
def test_a_file_of_before_builtins_had_names_does_not_compare(runtime, tmp_path, version, told):
    now = tmp_path / "now.heap"
    with ljspy.Target([ljspy.luajit(runtime), NAMES]).wait_ready() as target:
        done = ljspy.run("heap", "-p", target.pid, "-o", now)
    assert done.returncode == ljspy.OK, done.stderr
    before = KEPT / f"version-{version}.heap" if version else now
    done = ljspy.run("diff", before, now)
    assert done.returncode == ljspy.OK, done.stderr
    assert ("Paths through functions in C do not compare" in done.stdout) == told, done.stdout
