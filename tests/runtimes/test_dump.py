# SPDX-License-Identifier: MIT
"""ljspy dump shows what a program sees of itself."""

import json
import re

import pytest

import ljspy
import stacks

PARKING = [program.name for program in stacks.all_programs() if program.parks]


def agrees(dumped, patterns):
    """Whether a dumped stack matches a traceback. A traceback of 5,000 frames leaves out
    the middle; a coroutine's ends at its own first frame."""
    if None in patterns:
        gap = patterns.index(None)
        bottom = patterns[gap + 1 :]
        return agrees(dumped, patterns[:gap]) and agrees(dumped[-len(bottom) :], bottom)
    if patterns[-1].startswith("main chunk") and len(dumped) != len(patterns):
        return False
    return len(dumped) >= len(patterns) and all(map(re.fullmatch, patterns, dumped))


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("name", PARKING)
def test_dump_is_the_traceback(runtime, name):
    for target, _, traceback in ljspy.parks(runtime, name):
        result = ljspy.run("dump", "-p", target.pid)
        assert result.returncode == ljspy.OK, result.stderr
        # The program waits in io.read, called on the line that made the traceback.
        patterns = [r"io\.read \[builtin\]"] + ljspy.parse_traceback(traceback)
        dumped = ljspy.parse_dump(result.stdout)
        assert any(agrees(stack, patterns) for stack in dumped), f"{traceback}\n{result.stdout}"


@pytest.mark.usefixtures("built")
def test_dump_of_5000_frames_leaves_none_out(runtime):
    with ljspy.program(runtime, "deep", "off", task="park") as target:
        target.read_until(b"\n\n")
        result = ljspy.run("dump", "-p", target.pid)
    assert result.returncode == ljspy.OK, result.stderr
    dumped = ljspy.parse_dump(result.stdout)
    assert max(sum(frame.startswith("dig ") for frame in stack) for stack in dumped) == 5000


@pytest.mark.usefixtures("built")
def test_dump_does_not_wake_a_sleeper(runtime):
    with ljspy.program(runtime, "idle") as target:
        before = ljspy.sleeps(target.pid)
        dump = ljspy.run("dump", "-p", target.pid)
        assert dump.returncode == ljspy.OK
        assert ljspy.parse_dump(dump.stdout)
        assert ljspy.sleeps(target.pid) == before


@pytest.mark.usefixtures("built")
def test_dump_of_a_busy_program(runtime, jit):
    program = {p.name: p for p in stacks.all_programs()}["shares"]
    with ljspy.program(runtime, "shares", jit) as target:
        result = ljspy.run("dump", "-p", target.pid)
    assert result.returncode == ljspy.OK, result.stderr
    (dumped,) = ljspy.parse_dump(result.stdout)
    assert dumped[-1].startswith("main chunk shares.lua:")
    lines = program.source.splitlines()
    for frame in dumped:
        if frame.endswith("[builtin]"):
            continue
        assert 1 <= int(frame.rpartition(":")[2].split("_")[0]) <= len(lines)


PARKED = ljspy.ROOT / "tests/runtimes/parked.lua"


def line_of(tag):
    for number, line in enumerate(PARKED.read_text().splitlines(), 1):
        if line.endswith(f"-- @{tag}"):
            return number
    raise ValueError(tag)


def places(group):
    """Where a group of coroutines is parked: the line in each of its Lua functions."""
    return tuple(frame["line"] for frame in group["frames"] if frame["kind"] == "lua")


def parked_groups(vm):
    """The number of parked.lua's coroutines by (state, place)."""
    return {(group["state"], places(group)): group["count"] for group in vm["groups"]}


THREE_KINDS = {
    ("suspended", (line_of("step"), line_of("first"))): 5000,
    ("suspended", (line_of("step"), line_of("second_inside"), line_of("second"))): 3000,
    ("suspended", (line_of("third"),)): 2000,
}


def dump_json(target, status=ljspy.OK):
    result = ljspy.run("dump", "-p", target.pid, "--json")
    assert result.returncode == status, result.stderr
    document = json.loads(result.stdout)
    assert document["version"] == 1
    return document["processes"]


@pytest.fixture
def parked(runtime, request):
    with ljspy.Target([ljspy.luajit(runtime), PARKED, request.param]) as target:
        yield target.wait_ready()


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("parked", ["idle", "busy"], indirect=True)
def test_10000_parked_coroutines_by_place(parked):
    (process,) = dump_json(parked)
    (vm,) = process["vms"]
    assert vm["complete"]
    groups = parked_groups(vm)
    assert {key: groups.get(key) for key in THREE_KINDS} == THREE_KINDS
    counts = [group["count"] for group in vm["groups"]]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("parked", ["idle"], indirect=True)
def test_states_of_coroutines(parked):
    (process,) = dump_json(parked)
    (vm,) = process["vms"]
    assert vm["coroutines"] == {
        "suspended": 10000,
        "not started": 1,
        "on another C stack": 0,
        "running": 1,
        "normal": 1,
        "running or normal": 0,
        "dead": 2,
    }
    groups = parked_groups(vm)
    assert groups[("not started", (line_of("third") - 2,))] == 1  # where the function begins
    assert groups[("dead", ())] == 1
    assert groups[("dead", (line_of("fail"), line_of("failing")))] == 1
    # Active coroutines are in the stack of the thread that runs them.
    (thread,) = process["threads"]
    assert line_of("resuming") in places(thread)


# Two coroutines made by C code: it keeps a value on one, and has given the other a function.
KEEPING = r"""
local ffi = require("ffi")
ffi.cdef("void *luaL_newstate(void); void luaL_openlibs(void *); void *lua_newthread(void *);"
    .. "void lua_pushnumber(void *, double); int luaL_loadstring(void *, const char *);")
local C = ffi.C
local L = C.luaL_newstate()
C.luaL_openlibs(L)
C.lua_pushnumber(C.lua_newthread(L), 1)
C.luaL_loadstring(C.lua_newthread(L), "return 1")
print("ready") io.stdout:flush() io.read()
"""


@pytest.mark.usefixtures("built")
def test_coroutines_that_have_not_begun(runtime):
    """Nothing runs in their state."""
    with ljspy.Target([ljspy.luajit(runtime), "-e", KEEPING]) as target:
        target.wait_ready()
        (process,) = dump_json(target)
    (vm,) = [vm for vm in process["vms"] if vm["groups"]]
    assert {group["state"] for group in vm["groups"]} == {"not started"}
    assert sorted([frame["name"] for frame in group["frames"]] for group in vm["groups"]) == [[], ["main chunk"]]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("parked", ["idle"], indirect=True)
def test_coroutines_of_a_sleeper_are_read_without_waking_it(parked):
    before = ljspy.sleeps(parked.pid)
    (process,) = dump_json(parked)
    assert process["held"]["times"] == 0
    assert ljspy.sleeps(parked.pid) == before


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("parked", ["idle"], indirect=True)
def test_text_has_what_json_has(parked):
    (process,) = dump_json(parked)
    (vm,) = process["vms"]
    text = ljspy.run("dump", "-p", parked.pid).stdout
    headings = re.findall(r"^(\d+) coroutines? \((.*)\)$", text, re.MULTILINE)
    shown = [group for group in vm["groups"] if group["state"] not in ("running", "normal")]
    assert [(int(count), state) for count, state in headings] == [(g["count"], g["state"]) for g in shown]
    for group in shown:
        for frame in group["frames"]:
            assert f"    {frame['label']}\n" in text


HOSTILE = r"""
local name = "=a\27[2J\226\128\174\255\"\n;"
local co = coroutine.create(assert(loadstring("coroutine.yield()", name)))
coroutine.resume(co)
print("ready") io.stdout:flush() io.read()
"""


@pytest.mark.usefixtures("built")
def test_names_in_json_are_escaped(runtime):
    with ljspy.Target([ljspy.luajit(runtime), "-e", HOSTILE]) as target:
        target.wait_ready()
        (process,) = dump_json(target)
    (group,) = process["vms"][0]["groups"]
    file = group["frames"][-1]["file"]
    assert file == r'a\x1b[2J\u202e\xff"\n;'
