# SPDX-License-Identifier: MIT
"""A [vm] frame says what LuaJIT does for the Lua function below it: by LuaJIT's own
functions where the program has symbols, else by the bytecode instruction."""

import collections
import pathlib

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).parent
SCRIPT = HERE / "work.lua"

# What each function of the script makes LuaJIT do, and what else may come with it.
WORK = {
    "tables": ("creating a table", {"garbage collection"}),
    "stores": ("storing in a table", {"garbage collection", "creating a table"}),
    "closures": ("creating a closure", {"garbage collection", "closing upvalues"}),
    "concatenates": ("concatenating strings", {"garbage collection"}),
}
# Of each function, so that a few samples do not decide.
ENOUGH_US = 20_000
OF_TRACES = {"recording a trace", "leaving a trace"}


def work_of(recorded):
    """For each function of the script: the weight of each [vm] frame above it."""
    found = {function: collections.Counter() for function in WORK}
    for frames, weight in recorded:
        function = frames[-2].split(" ")[0] if len(frames) > 1 else ""
        if frames[-1].startswith("[vm") and function in found:
            found[function][frames[-1].removeprefix("[vm").removeprefix(": ").removesuffix("]")] += weight
    return found


def record(is_enough, directory, pid):
    return ljspy.record_native_until(is_enough, directory, "-p", pid, seconds=1, rate=ljspy.HIGHEST_RATE)


def has_all_work(recorded):
    found = work_of(recorded)
    return all(found[function][work] for function, (work, _) in WORK.items())


def test_the_instruction_tells_the_work_in_a_stripped_program(runtime, tmp_path):
    with ljspy.Target([ljspy.luajit(runtime), SCRIPT, "off", 50]).wait_ready() as target:
        found = work_of(record(has_all_work, tmp_path, target.pid))
    for function, (work, others) in WORK.items():
        assert found[function][work], (function, found)
        assert set(found[function]) <= {work} | others, (function, found)


def test_the_instruction_tells_the_work_in_compiled_code(tmp_path):
    """Compiled functions that return to the interpreter: in loops, the instruction is only near."""
    script = HERE / "compiled_work.lua"
    work = {"records": "creating a table", "joins": "concatenating strings"}

    def leaves_of(recorded):
        seen = {function: collections.Counter() for function in work}
        for frames, weight in recorded:
            function = frames[-2].split(" ")[0] if len(frames) > 1 else ""
            if function in work and frames[-1].startswith("[vm"):
                seen[function][frames[-1]] += weight
        return seen

    def is_enough(recorded):
        return all(seen.total() > ENOUGH_US for seen in leaves_of(recorded).values())

    with ljspy.Target([ljspy.luajit("luajit"), script, 50]).wait_ready() as target:
        seen = leaves_of(record(is_enough, tmp_path, target.pid))
    others = {"[vm: garbage collection]", *(f"[vm: {one}]" for one in OF_TRACES)}
    for function, own in work.items():
        assert seen[function][f"[vm: {own}]"] > seen[function]["[vm]"], seen
        assert set(seen[function]) <= {"[vm]", f"[vm: {own}]", *others}, seen


@pytest.fixture(scope="module")
def runner(tmp_path_factory, build):
    development = ljspy.PACKAGES / "libluajit-5.1-dev/usr"
    program = tmp_path_factory.mktemp("work") / "runner"
    build("gcc", "-O2", f"-I{development}/include/luajit-2.1", HERE / "runner.c", "-o", program,
          development / "lib/x86_64-linux-gnu/libluajit-5.1.a", "-lm", "-ldl")
    return program


def test_symbols_tell_the_work_in_compiled_code_too(runner, jit, tmp_path):
    def is_enough(recorded):
        found = work_of(recorded)
        return all(one.total() > ENOUGH_US for one in found.values()) and found["stores"]["growing a table"]

    with ljspy.Target([runner, SCRIPT, jit, 50]).wait_ready() as target:
        found = work_of(record(is_enough, tmp_path, target.pid))
    for function, (work, others) in WORK.items():
        allowed = {work} | others | (OF_TRACES if jit == "on" else set())
        if function == "stores":
            allowed.add("growing a table")
            assert found[function]["growing a table"], found
        if function == "concatenates":
            allowed |= {"creating a string", "converting a number"}
        assert found[function].total(), (function, found)
        assert found[function].total() * 0.95 <= sum(found[function][one] for one in allowed), (function, found)
