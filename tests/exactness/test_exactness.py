# SPDX-License-Identifier: MIT
"""Every stack is right or says that it is not. Programs with known stacks judge this at
every instruction, and at random times. exactness.c, truth.h and truth.lua describe what
they judge, and how."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import ljspy

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "layouts"))
import builds
import compiled_programs
import packages
import random_programs

EXACTNESS = ljspy.LJSPY.parent / "tests/exactness/exactness"
# Random programs by their seeds; EXACTNESS_PROGRAMS makes more of them.
SEEDS = range(1, int(os.environ.get("EXACTNESS_PROGRAMS", "3")) + 1)
PROGRAMS = sorted(path.stem for path in (HERE / "programs").glob("*.lua"))

# How many of the stacks may say that a part of them is unknown. None may be wrong.
LOST_PERCENT = 0.5
LOST_PERCENT_SIGNAL = 3
LOST_PERCENT_RETURNS = 2
# The same for a few samples at random times while the compiler works: a number, because
# one sample is a large share of them.
LOST_SAMPLES = 8

# How many may lack the line of a Lua function: a builtin may have replaced itself by a
# function that it has not entered yet.
NO_LINE_PERCENT = 0.1
NO_LINE_SAMPLES = 3

# The judge's output: how many stacks were judged, wrong, without a line and lost.
ROW = re.compile(r"\S+ +\S+ +(\d+) judged, +(\d+) wrong, +(\d+) without a line, +(\d+) lost")

# Options of the JIT compiler: its defaults, or so that traces come, go and fall apart all the time.
SETTINGS = {
    "default": (),
    "hot": ("hotloop=2", "hotexit=2"),
    "tight": ("hotloop=2", "hotexit=2", "sizemcode=32", "maxmcode=32", "maxtrace=20"),
}


@pytest.fixture(autouse=True)
def exactness_is_built():
    if not EXACTNESS.exists():
        pytest.skip(f"{EXACTNESS} is not built")


def run(mode, luajit, program, jit, count, settings=(), cwd=HERE):
    argv = [EXACTNESS, mode, luajit, program, jit, str(count), *settings]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


def judge(*arguments, **options):
    result = run(*arguments, **options)
    row = ROW.match(result.stdout)
    assert row, f"status {result.returncode}: {result.stderr}"
    print(result.stdout + result.stderr)
    return [int(number) for number in row.groups()]


def check_steps(luajit, program, mode="step", count=30000, lost_percent=LOST_PERCENT, jit="off", **options):
    judged, wrong, no_line, lost = judge(mode, luajit, program, jit, count, **options)
    assert judged > 1000
    assert wrong == 0
    assert no_line * 100 / judged <= NO_LINE_PERCENT
    assert lost * 100 / judged <= lost_percent


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_instruction_of_the_interpreter(runtime, program):
    """The order counts, too: the judge misses no stack and sees none twice."""
    check_steps(ljspy.luajit(runtime), program)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_instruction_of_random_programs(runtime, seed, tmp_path):
    """They cross from Lua to C and back in every way, one within the other."""
    shutil.copy(HERE / "truth.lua", tmp_path)
    check_steps(ljspy.luajit(runtime), random_programs.write(seed, tmp_path), count=8000, cwd=tmp_path)


def test_every_instruction_into_compiled_loops(runtime):
    """The VM has jumped behind a loop when it decides to enter the loop's trace."""
    check_steps(ljspy.luajit(runtime), "loops", jit="on", count=50000, settings=("hotloop=2",))


@pytest.mark.parametrize("program", ["calls", "coroutines", "loops", "metamethods", "next", "tailcalls", "varargs"])
def test_every_instruction_without_gc64(program):
    try:
        tree = packages.tree("bullseye", "luajit")
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    check_steps(tree / "usr/bin/luajit", program)


def test_every_instruction_of_finalizers_without_gc64():
    """getmetatable() writes its result's type over its own frame link."""
    try:
        tree = packages.tree("bullseye", "luajit")
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    check_steps(tree / "usr/bin/luajit", "finalizers", lost_percent=0)


def test_builtins_that_return_to_traces_without_gc64():
    """A builtin that is not compiled returns to a trace that goes on behind its call."""
    try:
        tree = packages.tree("bullseye", "luajit")
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    judged, wrong, no_line, lost = judge("sample", tree / "usr/bin/luajit", "next", "on", 1500, SETTINGS["hot"])
    assert judged == 1500
    assert wrong == no_line == 0
    assert lost * 100 / judged <= LOST_PERCENT_RETURNS


@pytest.mark.parametrize("program", ["callers", "returns", "tailcalls"])
def test_any_time_of_calls_without_gc64(program):
    """Frames have other slots there, and a return below a trace's start another base."""
    try:
        tree = packages.tree("bullseye", "luajit")
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    judged, wrong, no_line, lost = judge("sample", tree / "usr/bin/luajit", program, "on", 1500, SETTINGS["hot"])
    assert judged == 1500
    assert wrong == 0
    assert no_line * 100 / judged <= NO_LINE_PERCENT
    assert lost * 100 / judged <= LOST_PERCENT


def test_traces_that_grow_the_stack_without_gc64():
    """The tail of these traces checks the stack's size, behind all that snapshots describe."""
    try:
        tree = packages.tree("bullseye", "luajit")
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    judged, wrong, no_line, lost = judge("sample", tree / "usr/bin/luajit", "recursion", "on", 1500)
    assert judged > 1000
    assert wrong == 0
    assert no_line * 100 / judged <= NO_LINE_PERCENT
    assert lost * 100 / judged <= LOST_PERCENT


def test_every_instruction_into_and_out_of_traces_of_2_0(tmp_path):
    """Its VM clears jit_L as it leaves a trace, not jit_base."""
    try:
        run = builds.LUAJIT_20.prepare()
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    check_steps(run.program(tmp_path / "luajit"), "loops", jit="on", count=50000, settings=("hotloop=2",))


@pytest.mark.parametrize("program", ["calls", "callbacks", "coroutines", "metamethods", "varargs"])
def test_every_instruction_that_a_signal_may_interrupt(program):
    """Judged from inside the signal's handler. There, ljspy cannot read all of a coroutine
    that the VM is switching to."""
    check_steps(ljspy.luajit("luajit2"), program, "signal", 6000, LOST_PERCENT_SIGNAL)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_any_time(runtime, program, settings):
    judged, wrong, no_line, lost = judge("sample", ljspy.luajit(runtime), program, "on", 300, SETTINGS[settings])
    assert judged == 300
    assert wrong == 0
    assert no_line <= NO_LINE_SAMPLES
    assert lost <= LOST_SAMPLES


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("seed", SEEDS)
def test_any_time_of_random_programs(runtime, seed, settings, tmp_path):
    """Loops and recursion with calls of every kind, in traces and out of them."""
    shutil.copy(HERE / "truth.lua", tmp_path)
    program = compiled_programs.write(seed, tmp_path)
    judged, wrong, no_line, lost = judge(
        "sample", ljspy.luajit(runtime), program, "on", 400, SETTINGS[settings], cwd=tmp_path
    )
    assert judged == 400
    assert wrong == 0
    assert no_line <= NO_LINE_SAMPLES
    assert lost <= LOST_SAMPLES


def test_coroutines_that_yield_to_compiled_code():
    """What comes after a yield in the VM's code leads to a trace, which the VM's code alone does not tell."""
    judged, wrong, no_line, lost = judge("sample", ljspy.luajit("luajit"), "generators", "on", 3000)
    assert judged == 3000
    assert wrong == no_line == 0
    assert lost * 100 / judged <= LOST_PERCENT / 5


def test_nothing_judged_is_no_success():
    result = run("step", ljspy.luajit("luajit2"), "calls", "off", 0)
    assert result.returncode != 0 and not ROW.search(result.stdout)


@pytest.mark.builds
@pytest.mark.parametrize("program", ["calls", "metamethods"])
def test_integers_without_gc64(program):
    """Integers have another tag there, also in the slot that holds the position."""
    try:
        built = builds.Source(*builds.FORK, "-DLUAJIT_NUMMODE=2 " + builds.NO_GC64).prepare()
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    check_steps(built.command[0], program)


@pytest.mark.builds
@pytest.mark.parametrize("options", ["", " " + builds.NO_GC64], ids=["gc64", "no-gc64"])
def test_integers_are_compared(options):
    """As OpenResty builds its LuaJIT: a comparison's code lies beside a branch of the one before."""
    try:
        built = builds.Source(*builds.FORK, "-DLUAJIT_NUMMODE=2" + options).prepare()
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    check_steps(built.command[0], "recursion", count=6000)


def digests(pid):
    """A digest of each writable mapping of a process, by its line in /proc/PID/maps."""
    found = {}
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            if mapping := re.match(r"([0-9a-f]+)-([0-9a-f]+) .w", line):
                start, end = (int(address, 16) for address in mapping.groups())
                memory.seek(start)
                found[line] = hashlib.sha256(memory.read(end - start)).hexdigest()
    return found


@pytest.mark.parametrize("program", [
    "return function()\n\tfor i = 1, 70000 do\n\t\t@ local x = i\n\tend\nend\n",  # events
    # Stacks: each depth has its own.
    "local function f(n)\n\t@ local x = n\n\tif n > 0 then\n\t\tf(n - 1)\n\tend\nend\n"
    "return function()\n\tfor i = 1, 4000 do\n\t\tloadstring('local f, n = ... f(n) return', '=n' .. i)(f, 4)\n\tend\nend\n",
    "return function()\n\t@ local x = 1\nend\n" + "-- a line\n" * 1024,
], ids=["events", "stacks", "lines"])
def test_a_truth_that_is_too_long_is_refused(tmp_path, program):
    """Without its end, the judge would take right stacks for wrong ones, or miss some."""
    shutil.copy(HERE / "truth.lua", tmp_path)
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs/long.lua").write_text(program)
    result = run("step", ljspy.luajit("luajit"), "long", "off", 10, cwd=tmp_path)
    assert result.returncode != 0 and "more than" in result.stderr, result.stdout + result.stderr


@pytest.mark.usefixtures("built")
def test_not_one_byte_is_changed(runtime):
    """Dumps leave the memory of a target that holds still unchanged."""
    with ljspy.Target([ljspy.luajit(runtime), HERE / "truth.lua", "calls", "on", 1], cwd=HERE) as target:
        target.read_until(b"ready")
        assert ljspy.wait_until(lambda: ljspy.status_field(target.pid, "State") == "S")
        before = digests(target.pid)
        assert len(before) > 3
        for _ in range(20):
            assert ljspy.run("dump", "-p", target.pid).returncode == ljspy.OK
        assert digests(target.pid) == before
