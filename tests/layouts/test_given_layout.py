# SPDX-License-Identifier: MIT
"""A given layout replaces the recognised one."""

import collections
import json
import pathlib
import subprocess

import builds
import ljspy
import packages
import pytest
import stacks

pytestmark = pytest.mark.usefixtures("built")

SHARES = {program.name: program for program in stacks.all_programs()}["shares"]


@pytest.fixture
def target():
    with ljspy.program("luajit", "shares") as running:
        yield running


def test_release_that_it_is(target, tmp_path):
    options = ["--layout", "debian-bookworm-luajit"]
    recording = ljspy.record(tmp_path, "-p", target.pid, options=options)
    assert recording.samples
    assert all(SHARES.judge(sample) != "wrong" for sample in recording.samples)


@pytest.mark.parametrize("command", [["record", "-o", "-", "-f", "folded", "-d", "1s"], ["dump"], ["info"]], ids=" ".join)
@pytest.mark.parametrize("release", ["debian-bullseye-luajit", "debian-trixie-luajit"])
def test_release_that_it_is_not_is_refused(target, command, release):
    result = ljspy.run(*command, "-p", target.pid, "--layout", release)
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert "does not fit" in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("command", ["record -o - -f folded -d 1s", "check -d 1s", "traces -d 1s", "memory"])
def test_it_has_to_fit_each_of_several(target, command):
    with ljspy.busy(program=ljspy.luajit("luajit2")) as other:
        for pids in [(target.pid, other.pid), (other.pid, target.pid)]:
            listed = ",".join(map(str, pids))
            result = ljspy.run(*command.split(), "-p", listed, "--layout", "debian-bookworm-luajit")
            assert result.returncode == ljspy.NOTHING_PROFILED, result.stderr
            assert f"does not fit the LuaJIT of process {other.pid}" in result.stderr and not result.stdout


def test_of_several_one_that_is_gone_is_left_out(target):
    listed = f"{2 ** 22 - 1},{target.pid}"
    arguments = ["record", "-o", "-", "-f", "folded", "-p", listed, "--layout", "debian-bookworm-luajit"]
    result = ljspy.run_beside(target.pid, 0.5, *arguments)
    assert result.returncode == ljspy.WITH_ERRORS, result.stderr
    assert result.stdout


def test_release_that_a_command_is_not(tmp_path):
    command = [ljspy.luajit("luajit"), "-e", "local t = os.clock() while os.clock() < t + 1 do end"]
    result = ljspy.run("record", "-o", tmp_path / "out", "-f", "folded", "--layout", "debian-trixie-luajit", "--", *command)
    assert result.returncode == ljspy.WITH_ERRORS
    assert "its Lua is not shown: layout given: the code contradicts it" in result.stderr


def test_stacks_say_that_their_layout_is_not_known(jit, tmp_path):
    """ljspy shows only native frames of such a VM, with a mark in place of Lua frames."""
    code = 'local s = ("a"):rep(1000) while os.clock() < 1 do for i = 1, 1e4 do s:find("y.-z") end end'
    command = [ljspy.luajit("luajit"), f"-j{jit}", "-e", code]
    folded, stats = tmp_path / "out", tmp_path / "stats"
    options = ["-f", "folded", "-o", folded, "--stats", stats, "--layout", "debian-trixie-luajit"]
    assert ljspy.run("record", "-r", ljspy.HIGH_RATE, *options, "--", *command).returncode == ljspy.WITH_ERRORS
    weights = collections.Counter()
    for line in folded.read_text().splitlines():
        stack, _, weight = line.rpartition(" ")
        # Beside others, the program may end long after its last sample: nothing is known of that time.
        if stack != "[lost: target ended]":
            weights["[lost: layout not known]" in stack] += int(weight)
    # The program also works for a moment before its state exists, and after it.
    assert weights[True] >= 0.95 * sum(weights.values()), folded.read_text()
    document = json.loads(stats.read_text())
    assert document["lost"]["layout not known"] >= 0.95 * document["samples"]


@pytest.mark.parametrize(
    "text, complaint",
    [("g.vmstate = many\n", "line 1"), ("gc64 = yes\nno such thing\n", "line 2"), ("g.nonsense = 4\n", "no such field")],
)
def test_file_that_is_no_layout(target, tmp_path, text, complaint):
    file = tmp_path / "layout"
    file.write_text(text)
    result = ljspy.run("info", "-p", target.pid, "--layout", file)
    assert result.returncode == ljspy.USAGE
    assert complaint in result.stderr


def test_neither_release_nor_file(target):
    result = ljspy.run("info", "-p", target.pid, "--layout", "2.2")
    assert result.returncode == ljspy.USAGE
    assert "debian-bookworm-luajit" in result.stderr


def test_debug_info_where_there_is_none():
    result = ljspy.run("info", "--dwarf", ljspy.luajit("luajit"))
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert not result.stdout


OTHER_STATES = "its VM states are not numbered as in any LuaJIT that ljspy knows"


@pytest.mark.parametrize(
    "state, opcode, complaint",
    [
        ("LJ_VMST_C", 89, None),
        ("LJ_VMST_HEAD", 89, OTHER_STATES),
        ("LJ_VMST_C", 90, "its debug info is not LuaJIT's"),
    ],
    ids=["luajit", "other states", "other opcodes"],
)
def test_debug_info_of_a_fork_with_other_states_is_refused(tmp_path, state, opcode, complaint):
    library = tmp_path / "other_states.so"
    source = pathlib.Path(__file__).with_name("other_states.c")
    subprocess.run(["gcc", "-g", "-shared", f"-DSTATE={state}", f"-DFUNCF={opcode}", "-o", library, source], check=True)
    result = ljspy.run("info", "--dwarf", library)
    if complaint is None:
        assert result.returncode == ljspy.OK
        assert "g.vmstate = 8\n" in result.stdout
    else:
        assert result.returncode == ljspy.NOTHING_PROFILED
        assert complaint in result.stderr
        assert not result.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    "options", ["", pytest.param(builds.NO_GC64, marks=pytest.mark.builds)], ids=("gc64", "gc32")
)
def test_debug_info_becomes_a_layout(options, tmp_path):
    try:
        run = builds.Source("sid", "luajit", options).prepare()
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    text = ljspy.run("info", "--dwarf", run.debug).stdout
    own, absurd = tmp_path / "own", tmp_path / "absurd"
    own.write_text(text)
    absurd.write_text(text + "GCtrace.size = 100000\n")
    with ljspy.Target([*run.command, "shares.lua", "on", 50], cwd=stacks.PROGRAMS).wait_ready() as target:
        both = ljspy.run("info", "-p", target.pid, "--dwarf", run.debug)
        recording = ljspy.record(tmp_path, "-p", target.pid, options=["--layout", own])
        refused = ljspy.run("info", "-p", target.pid, "--layout", absurd)
    assert "there" not in both.stdout
    assert recording.samples
    assert all(SHARES.judge(sample) != "wrong" for sample in recording.samples)
    assert "GCtrace.size cannot be right" in refused.stderr
