# SPDX-License-Identifier: MIT
"""ljspy recognises LuaJIT in cores of arm64 processes, and shows their Lua stacks rightly."""

import collections
import json
import time

import arm64_core
import ljspy
import packages
import pytest
import stacks

pytestmark = pytest.mark.usefixtures("built")

HERE = packages.ROOT / "tests/layouts"
# Of each program; a stack may be lost for a moment, while a trace's exit is half done.
CORES, LOST = 24, {"on": 2, "off": 1}


@pytest.fixture
def emulated(tmp_path):
    """Returns a function that runs a suite's LuaJIT, or skips the test."""

    def run(suite, *arguments, cwd):
        try:
            return arm64_core.Emulated(suite, tmp_path, *arguments, cwd=cwd)
        except packages.Unavailable as reason:
            return pytest.skip(f"not to be had: {reason}")

    return run


def dump(core, *options):
    result = ljspy.run("dump", "--json", "--core", core, *options)
    assert "could not be recognised" not in result.stderr
    (process,) = json.loads(result.stdout)["processes"]
    return process


@pytest.mark.parametrize("suite", packages.SUITES)
def test_stacks_of_a_parked_process(emulated, suite):
    with emulated(suite, "parked.lua", cwd=HERE) as process:
        # It falls asleep after it says that it is ready.
        assert ljspy.wait_until(lambda: ljspy.status_field(process.target.pid, "State") == "S")
        core = process.core()
    found = dump(core)
    (thread,) = found["threads"]
    assert [frame["label"] for frame in thread["frames"]] == [
        "io.read [builtin]",
        "wait parked.lua:3",
        "outer parked.lua:4",
        "outer parked.lua:4",
        "outer parked.lua:4",
        "function <parked.lua:8> parked.lua:8",
        "coroutine.wrap_aux [builtin]",
        "main chunk parked.lua:12",
    ]
    native = [frame["label"] for frame in dump(core, "--native", "all")["threads"][0]["frames"]]
    names = [label.split()[0] for label in native]
    assert names.index("fgets") < names.index("io.read") < names.index("main") < names.index("__libc_start_main")
    assert not any(map(stacks.is_lost, native)), native
    (vm,) = found["vms"]
    assert vm["complete"]
    assert vm["coroutines"]["suspended"] == 1
    (group,) = [group for group in vm["groups"] if group["state"] == "suspended"]
    assert [frame["label"] for frame in group["frames"]] == ["coroutine.yield [builtin]", "function <parked.lua:6> parked.lua:6"]


def function_view(frame):
    """The frame's text as in the programs' lists."""
    if frame["kind"] != "lua":
        return frame["label"]
    if frame["label"].startswith("main chunk"):
        return f"main chunk {frame['file']}"
    where = f"{frame['file']}:{frame['firstline']}"
    return f"{frame['name']} {where}" if frame["name"] else f"function <{where}>"


@pytest.mark.parametrize("program", ["calls", "coroutines", "garbage", "protected"])
def test_stacks_of_a_busy_process_are_legal(emulated, program, jit):
    judge = {one.name: one for one in stacks.all_programs()}[program]
    verdicts, wrong = collections.Counter(), []
    with emulated("trixie", f"{program}.lua", jit, 50, cwd=stacks.PROGRAMS) as process:
        for _ in range(CORES):
            time.sleep(0.05)
            core = process.core()
            (thread,) = dump(core)["threads"]
            core.unlink()
            sample = stacks.parse_stack(";".join(function_view(frame) for frame in reversed(thread["frames"])))
            if any(frame.startswith("ready ") for frame in sample.frames):
                continue  # it has said so, and begins in a moment
            verdict = judge.judge(sample)
            verdicts[verdict] += 1
            if verdict == "wrong":
                wrong.append(sample.frames)
    assert not wrong, wrong
    print(verdicts)
    assert verdicts["lost"] <= LOST[jit] and verdicts["whole"] > CORES / 4, verdicts
