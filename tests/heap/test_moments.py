# SPDX-License-Identifier: MIT
"""A heap adds up in a core file and while its program runs: what is half done is read again."""

import os

import pytest

import heaps
import ljspy

import arm64_core  # among tests/layouts, which heaps adds to the path

pytestmark = pytest.mark.usefixtures("built")

BUSY = heaps.HERE / "busy.lua"
# `make heap-truth` looks more often.
TIMES = int(os.environ.get("HEAP_LOOKS", "5"))


def test_a_core_has_the_heap_of_its_process(runtime, tmp_path):
    path = tmp_path / "graph"
    with ljspy.Target([ljspy.luajit(runtime), heaps.GRAPH, "3", "500", path, "8"]) as target:
        assert ljspy.wait_until(path.exists, seconds=30)
        assert ljspy.wait_until(lambda: ljspy.sleeps(target.pid))
        core = tmp_path / f"core.{target.pid}"
        heaps.gcore(tmp_path, target.pid)
        live = heaps.show(target.pid)
        heap = heaps.show("core", core)
    assert heap.sum == heap.total
    assert not heaps.wrong(heap, path.read_text(encoding="latin-1"))
    assert (heap.bytes, heap.kinds) == (live.bytes, live.kinds)


def test_a_core_of_arm64_has_the_heap_of_its_process(tmp_path):
    told = tmp_path / "graph"
    try:
        process = arm64_core.Emulated("trixie", tmp_path, heaps.GRAPH, 7, 300, told, "8", cwd=heaps.HERE)
    except heaps.builds.packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    with process:
        heap = heaps.show("core", process.core())
    assert heap.sum == heap.total and heap.uncertain == 0
    assert not heaps.wrong(heap, told.read_text(encoding="latin-1"))


def test_a_heap_that_changes_all_the_time_adds_up(runtime, jit):
    with ljspy.Target([ljspy.luajit(runtime), f"-j{jit}", BUSY]) as target:
        target.wait_ready()
        for _ in range(TIMES):
            heap = heaps.show(target.pid)
            assert heap.sum == heap.total
            assert heap.uncertain == 0
    assert "table" in heap.kinds.values()


def test_a_sleeping_program_is_not_stopped(runtime, tmp_path):
    path = tmp_path / "graph"
    with ljspy.Target([ljspy.luajit(runtime), heaps.GRAPH, "3", "100", path, "stop"]) as target:
        assert ljspy.wait_until(path.exists, seconds=30)
        assert ljspy.wait_until(lambda: ljspy.sleeps(target.pid))
        switches = ljspy.status_field(target.pid, "voluntary_ctxt_switches")
        heap = heaps.show(target.pid)
        assert ljspy.status_field(target.pid, "voluntary_ctxt_switches") == switches
    assert heap.sum == heap.total


def test_keys_that_become_many_do_not_come_and_go(runtime, tmp_path):
    program = """
        cache = {}
        for count = 40, 100, 60 do
            for i = 1, count do cache["k" .. i] = cache["k" .. i] or { ("x"):rep(20000) .. i } end
            print("ready")
            io.stdout:flush()
            io.read()
        end"""
    files = [tmp_path / "before.heap", tmp_path / "after.heap"]
    with ljspy.Target([ljspy.luajit(runtime), "-e", program]) as target:
        for path in files:
            target.wait_ready()
            assert ljspy.run("heap", "-p", target.pid, "-o", path).returncode == ljspy.OK
            target.write("more\n")
    done = ljspy.run("diff", *files)
    assert done.returncode == ljspy.OK, done.stderr
    rows = [line for line in done.stdout.splitlines() if "_G.cache" in line]
    assert any(line.split()[-1] == '_G.cache["*"]' and line.split()[-2] == "+60" for line in rows), rows
    assert not any(".k1" in line for line in rows), rows
