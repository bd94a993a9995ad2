# SPDX-License-Identifier: MIT
"""Tarantool's fibers: Lua coroutines that each have a C stack of their own, and wait in C functions."""

import json
import pathlib
import sys

import pytest

import ljspy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "layouts"))
import builds
import packages

pytestmark = pytest.mark.usefixtures("built")

# The last fiber never sleeps: it is the one that runs.
SCRIPT = """
local fiber = require('fiber')
local function inner() while true do fiber.sleep(1000) end end
local function sleeper() inner() end
local channel = fiber.channel(1)
local function waiter() channel:get() end
local function nested() coroutine.wrap(function() sleeper() end)() end
local function spinner()
  local sum = 0
  while true do for i = 1, 1e5 do sum = sum + i % 7 end fiber.yield() end
end
fiber.create(sleeper) fiber.create(waiter) fiber.create(nested) fiber.create(spinner)
io.write('ready\\n') io.flush()
"""
STATE = "on another C stack"


@pytest.fixture(name="tarantool", scope="module")
def start(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tarantool")
    (directory / "fibers.lua").write_text(SCRIPT)
    try:
        run = builds.Program("bookworm", "tarantool", "usr/bin/tarantool").prepare()
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    with ljspy.Target([*run.command, "fibers.lua"], cwd=directory).wait_ready() as target:
        yield target


def names(frames):
    """Those of a group's functions, innermost first."""
    return [frame["name"] or f"{frame['file']}:{frame['firstline']}" for frame in frames]


def test_waiting_fibers_have_their_stacks(tarantool):
    (process,) = json.loads(ljspy.run("dump", "-p", tarantool.pid, "--json").stdout)["processes"]
    (vm,) = process["vms"]
    parked = [group for group in vm["groups"] if group["state"] == STATE]
    assert vm["coroutines"]["running"] == 1
    assert vm["coroutines"][STATE] == sum(group["count"] for group in parked) >= 4
    stacks = [names(group["frames"]) for group in parked]
    assert not any("lost" in name for stack in stacks for name in stack), stacks
    assert any(stack[:2] == ["lbox_fiber_sleep", "inner"] and len(stack) == 3 for stack in stacks), stacks
    assert any(stack[0] == "luaT_fiber_channel_get" for stack in stacks), stacks
    # The coroutine in a fiber, and the fiber that has resumed it.
    assert any(stack[:2] == ["lbox_fiber_sleep", "inner"] and len(stack) == 4 for stack in stacks), stacks
    assert any("wrap" in stack[0] for stack in stacks), stacks


def test_the_running_fiber_is_whole(tarantool, tmp_path):
    recording = ljspy.record(tmp_path, "-p", tarantool.pid, seconds=1)
    work = [sample for sample in recording.samples if "fibers.lua:8" in " ".join(sample.frames)]
    assert work
    assert ljspy.weight_of(work) > 0.8 * ljspy.weight_of(recording.samples)
    assert not [sample.frames for sample in work if any("lost" in frame for frame in sample.frames)]
