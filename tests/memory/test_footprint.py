# SPDX-License-Identifier: MIT
"""`ljspy memory`: the resident set told apart, against what targets know of themselves.

Targets stand still while they are judged."""

import collections
import errno
import json
import os
import pathlib
import re
import subprocess
import threading

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

KIB, MIB = 1 << 10, 1 << 20
PAGE = 4096

# GC32 and GC64, old and new.
BUILDS = {
    "luajit": ljspy.luajit("luajit"),
    "luajit2": ljspy.luajit("luajit2"),
    "gc32": ljspy.PACKAGES / "bullseye/luajit/usr/bin/luajit",
}

# Holds strings, some in tables large enough for blocks of their own, and lets half of them go.
HOLDER = """
    local kept, array = {}, {}
    for i = 1, 20000 do kept[i] = string.rep("x", 1000) .. i end
    for i = 1, 1e6 do array[i] = i end
    local function tell()
        io.write(collectgarbage("count") * 1024, "\\n") io.flush() io.read()
    end
    collectgarbage() collectgarbage() collectgarbage("stop")
    tell()
    for i = 1, 20000, 2 do kept[i] = nil end
    collectgarbage() collectgarbage() collectgarbage("stop")
    tell()
"""


def memory(pid, *options, status=ljspy.OK):
    # A target says that it is ready just before it sleeps, and may still touch pages.
    assert ljspy.wait_until(lambda: not ljspy.work_of(pid))
    done = ljspy.run("memory", "--json", "-p", pid, *options)
    assert done.returncode == status, done.stderr
    (process,) = json.loads(done.stdout)["processes"]
    return process


def smaps(pid, *fields):
    """Sums over all mappings, in bytes."""
    text = pathlib.Path(f"/proc/{pid}/smaps").read_text(errors="replace")
    return [sum(int(kib) for kib in re.findall(rf"^{field}: +(\d+) kB$", text, re.MULTILINE)) * KIB for field in fields]


def rss_of(process, *kinds):
    return sum(row["rss_bytes"] for row in process["rows"] if row["kind"] in kinds)


def judge_sum(process):
    """The rows sum to the RSS, of which the kernel knows the same."""
    assert process["steady"]
    rss, pss = smaps(process["pid"], "Rss", "Pss")
    assert sum(row["rss_bytes"] for row in process["rows"]) == process["rss_bytes"] == rss
    assert sum(row["pss_bytes"] for row in process["rows"]) == process["pss_bytes"]
    # Others that come and go change what this process's share of their common pages is.
    assert process["pss_bytes"] <= rss and pss <= rss
    assert all(0 < row["rss_bytes"] for row in process["rows"])


@pytest.mark.parametrize("build", BUILDS)
def test_heap_and_its_free_space(build):
    with ljspy.Target([BUILDS[build], "-e", HOLDER]) as target:
        total = float(target.read_until(b"\n", seconds=30))
        full = memory(target.pid)
        judge_sum(full)
        target.write("\n")
        total_after = float(target.read_until(b"\n"))
        half = memory(target.pid)
        judge_sum(half)

    (vm,), (vm_after,) = full["vms"], half["vms"]
    # Telling its sum allocates a little.
    assert vm["gc_total_bytes"] == pytest.approx(total, abs=64 * KIB)
    assert vm_after["gc_total_bytes"] == pytest.approx(total_after, abs=64 * KIB)
    freed = vm["gc_total_bytes"] - vm_after["gc_total_bytes"]
    assert freed > 9 * MIB
    # Each chunk has a header of a word, and is a multiple of a word.
    assert vm["gc_total_bytes"] < rss_of(full, "lua_heap") < 1.05 * vm["gc_total_bytes"]
    # The array of a million slots.
    assert vm["large_bytes"] >= 8 * MIB
    # What was freed is still there, as free space.
    assert vm_after["free_bytes"] - vm["free_bytes"] == pytest.approx(freed, rel=0.05)
    assert rss_of(half, "lua_free") - rss_of(full, "lua_free") == pytest.approx(freed, rel=0.05)
    assert rss_of(half, "lua_heap") + rss_of(half, "lua_free") == pytest.approx(
        rss_of(full, "lua_heap") + rss_of(full, "lua_free"), abs=256 * KIB
    )
    # Of what LuaJIT has, nothing is called something else.
    assert rss_of(full, "anonymous") < 256 * KIB


def test_large_blocks_of_several_vms_are_nobodys(tmp_path):
    code = """
        local ffi = require "ffi"
        ffi.cdef "void *luaL_newstate(void); void luaL_openlibs(void *); int luaL_loadstring(void *, const char *);"
        ffi.cdef "int lua_pcall(void *, int, int, int);"
        local C = ffi.load("luajit-5.1.so.2")
        for i = 1, 2 do
            local L = C.luaL_newstate()
            C.luaL_openlibs(L)
            assert(C.luaL_loadstring(L, "big = string.rep('x', 3 * 2 ^ 20)") == 0 and C.lua_pcall(L, 0, 0, 0) == 0)
        end
        io.write("ready\\n") io.flush() io.read()
    """
    with ljspy.Target([ljspy.luajit("luajit"), "-e", code]) as target:
        target.wait_ready()
        process = memory(target.pid)
        judge_sum(process)
    assert len(process["vms"]) == 3
    assert all(vm["large_bytes"] is None and vm["large_blocks"] is None for vm in process["vms"])
    assert rss_of(process, "lua_large") >= 6 * MIB


def test_machine_code(runtime):
    code = 'local s = 0 for i = 1, 1e7 do s = s + i % 7 end io.write("ready\\n") io.flush() io.read()'
    with ljspy.Target([ljspy.luajit(runtime), "-e", code]) as target:
        target.wait_ready()
        process = memory(target.pid)
        judge_sum(process)
    (vm,) = process["vms"]
    assert vm["mcode_bytes"] >= 32 * KIB
    assert 0 < rss_of(process, "mcode") <= vm["mcode_bytes"]


@pytest.mark.parametrize("threads", [0, 3])
def test_arenas_stacks_and_large_blocks(threads):
    with ljspy.Target([ljspy.helper("holder"), threads]) as target:
        words = target.read_until(b"ready\n").split()[:-1]
        truth = {name: int(value) for name, value in zip(words[::2], words[1::2])}
        process = memory(target.pid)
        judge_sum(process)
    malloc = process["malloc"]
    assert malloc["library"] == "glibc" and malloc["arenas"] == threads + 1
    assert (malloc["arena_bytes"], malloc["free_bytes"]) == (truth["arenas"], truth["free"])
    assert rss_of(process, "malloc_large") == truth["large"]
    assert not process["vms"]
    (own,) = [row for row in process["rows"] if row["kind"] == "stack" and row["name"] == "of the first thread"] or [None]
    assert own
    others = [row for row in process["rows"] if row["kind"] == "stack" and row is not own]
    assert sum(row["count"] for row in others) == threads
    # What the threads have used, and some pages of the C library's.
    used = sum(row["rss_bytes"] for row in others)
    assert truth["stacks"] <= used <= truth["stacks"] + threads * 64 * KIB
    # Pages that were read but never written are no memory.
    assert truth["mapped"] <= rss_of(process, "anonymous") <= truth["mapped"] + 64 * KIB


def test_a_process_without_luajit_has_rows():
    with ljspy.Target([ljspy.helper("sleeper")]) as target:
        target.wait_ready()
        process = memory(target.pid)
        judge_sum(process)
    assert process["vms"] == [] and process["zones"] == []
    assert {"code", "data", "malloc", "stack"} <= {row["kind"] for row in process["rows"]}
    assert any(row["kind"] == "code" and row["name"].endswith("/sleeper") for row in process["rows"])


def test_private_mappings_of_dev_zero_are_anonymous():
    """The kernel has no pages of a file for them, nor does the name mean that others have them."""
    code = """
import mmap, time
with open("/dev/zero", "r+b") as zero:
    held = [mmap.mmap(zero.fileno(), 8 << 20, flags=flags) for flags in (mmap.MAP_PRIVATE, mmap.MAP_SHARED)]
for each in held:
    each.write(b"x" * len(each))
print("ready", flush=True)
time.sleep(50)
"""
    with ljspy.Target(["python3", "-c", code]).wait_ready() as target:
        process = memory(target.pid)
        judge_sum(process)
    rows = {row["kind"]: row["rss_bytes"] for row in process["rows"] if (row["name"] or "").startswith("/dev/zero")}
    assert rows == {"anonymous": 8 * MIB, "shared": 8 * MIB}


def test_text_says_the_same():
    with ljspy.Target([ljspy.helper("holder"), 1]) as target:
        target.read_until(b"ready\n")
        process = memory(target.pid)
        done = ljspy.run("memory", "-p", target.pid)
    assert done.returncode == ljspy.OK and done.stderr == ""
    rows = re.findall(r"^ +([\d.]+) +([\d.]+) +([\d.]+)  (.*)$", done.stdout, re.MULTILINE)
    *parts, whole = rows
    assert whole[3] == "all" and float(whole[0]) * KIB == process["rss_bytes"]
    assert len(parts) == len(process["rows"])
    assert sum(float(row[0]) for row in parts) == pytest.approx(float(whole[0]), abs=len(parts) * 0.05)
    assert "malloc() is glibc's; 2 arenas" in done.stdout


def test_processes_that_share_pages():
    """A child has its parent's pages until one of them writes: PSS counts them once for both."""
    code = """
import os, sys, time
held = bytearray(b"x" * (32 << 20))
child = os.fork()
if child == 0:
    time.sleep(50)
print(child, "ready", flush=True)
time.sleep(50)
"""
    with ljspy.Target(["python3", "-c", code]) as target:
        child = int(target.read_until(b"ready\n").split()[0])
        assert ljspy.wait_until(lambda: ljspy.status_field(child, "State") == "S")
        try:
            done = ljspy.run("memory", "--json", "--tree", target.pid)
            text = ljspy.run("memory", "--tree", target.pid)
        finally:
            os.kill(child, 9)
    assert done.returncode == text.returncode == ljspy.OK
    processes = json.loads(done.stdout)["processes"]
    assert [process["pid"] for process in processes] == [target.pid, child]
    for process in processes:
        assert sum(row["rss_bytes"] for row in process["rows"]) == process["rss_bytes"] > 32 * MIB
        assert process["rss_bytes"] - process["pss_bytes"] > 15 * MIB
    held = [rss_of(process, "malloc_large") for process in processes]
    # Each may have used some pages since the fork.
    assert held[0] == pytest.approx(held[1], abs=256 * KIB) and min(held) > 32 * MIB
    assert sum(process["pss_bytes"] for process in processes) < 32 * MIB + sum(process["rss_bytes"] for process in processes) / 4
    assert "2 processes" in text.stdout


def test_a_process_that_changes_its_memory_all_the_time(runtime):
    """Rows still sum up; nothing is stopped, and nothing else is touched."""
    code = 'io.write("ready\\n") io.flush() local t = {} while true do for i = 1, 1e5 do t[i] = {i, tostring(i)} end t = {} end'
    with ljspy.Target([ljspy.luajit(runtime), "-e", code]) as target:
        target.wait_ready()
        allocators = collections.Counter()
        for _ in range(5):
            done = ljspy.run("memory", "--json", "-p", target.pid)
            (process,) = json.loads(done.stdout)["processes"]
            assert sum(row["rss_bytes"] for row in process["rows"]) == process["rss_bytes"]
            assert done.returncode == (ljspy.OK if process["confirmed"] else ljspy.WITH_ERRORS)
            if process["confirmed"]:
                # It may have been changing its list of segments whenever ljspy looked.
                allocator = process["vms"][0]["allocator"]
                allocators[allocator] += 1
                if allocator != "unknown":
                    assert rss_of(process, "lua_heap", "lua_free") > rss_of(process, "anonymous"), process
        assert allocators["lj_alloc"] and set(allocators) <= {"lj_alloc", "unknown"}, allocators


def test_nobody_is_stopped():
    """A stop would show in the counts of context switches of a process that sleeps."""
    with ljspy.Target([ljspy.luajit("luajit"), "-e", 'io.write("ready\\n") io.flush() io.read()']) as target:
        target.wait_ready()
        before = ljspy.sleeps(target.pid)
        assert memory(target.pid)["vms"]
        assert ljspy.sleeps(target.pid) == before
        assert ljspy.status_field(target.pid, "TracerPid") == "0"


def test_a_luajit_that_could_not_be_read_is_not_told_as_none(tmp_path):
    with ljspy.Target([ljspy.luajit("luajit"), "-e", 'io.write("ready\\n") io.flush() io.read()']) as target:
        target.wait_ready()
        report = tmp_path / "report"
        through = (ljspy.helper("faulty"), "process_vm_readv", 1, 1_000_000_000, errno.EFAULT, report)
        done = ljspy.run("memory", "-p", target.pid, through=through)
        assert int(report.read_text().split()[1]) > 0, "no call has failed"
        assert "Lua heap" not in done.stdout and "LuaJIT's part could not be told" in done.stdout
        assert done.returncode == ljspy.WITH_ERRORS
        done = ljspy.run("memory", "-p", target.pid, "--json", through=through)
        assert not json.loads(done.stdout)["processes"][0]["confirmed"]


def test_refusals(tmp_path):
    with ljspy.Target([ljspy.helper("sleeper")]) as target:
        target.wait_ready()
        pid = target.pid
        if os.geteuid() == 0:
            done = ljspy.run("memory", "-p", pid, user=ljspy.NOBODY)
            assert done.returncode == ljspy.NOTHING_PROFILED
            assert f"Process {pid} (sleeper) belongs to user root, not to you." in done.stderr
            # One that may not be looked at does not keep the others from it.
            with ljspy.Target([ljspy.helper("sleeper")], user=ljspy.NOBODY) as other:
                other.wait_ready()
                done = ljspy.run("memory", "-p", f"{other.pid},{pid}", user=ljspy.NOBODY)
                assert done.returncode == ljspy.WITH_ERRORS and "belongs to user root" in done.stderr
                assert f"Process {other.pid} sleeper" in done.stdout
    done = ljspy.run("memory", "-p", pid)
    assert done.returncode == ljspy.NOTHING_PROFILED and f"There is no process {pid}." in done.stderr
    assert ljspy.run("memory", "-p", "none").returncode == ljspy.USAGE
    if pathlib.Path("/proc/2/comm").read_text() == "kthreadd\n":
        done = ljspy.run("memory", "-p", 2)
        assert done.returncode == ljspy.NOTHING_PROFILED and "is a thread of the kernel" in done.stderr


def test_a_process_that_has_ended_but_is_still_there():
    child = subprocess.Popen(["true"])
    assert ljspy.wait_until(lambda: ljspy.status_field(child.pid, "State") == "Z")
    done = ljspy.run("memory", "-p", child.pid)
    child.wait()
    assert done.returncode == ljspy.NOTHING_PROFILED and "has ended" in done.stderr
