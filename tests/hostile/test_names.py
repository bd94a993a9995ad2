# SPDX-License-Identifier: MIT
"""The target chooses its names; the worst they can do is look odd."""

import shutil
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")


@pytest.fixture
def target(runtime):
    with ljspy.program(runtime, "hostile", "off") as target:
        yield target


def controls(text):
    return {c for c in text if not c.isprintable() and c != "\n"}


def test_folded_lines_are_whole(target, tmp_path):
    # The judge of all programs checks that no name ends a frame or a line.
    recording = ljspy.record(tmp_path, "-p", target.pid, seconds=2)
    assert any("evil" in frame for sample in recording.samples for frame in sample.frames)
    assert not controls((tmp_path / "profile.folded").read_bytes().decode())


def test_svg_is_well_formed(target, tmp_path):
    svg = tmp_path / "profile.svg"
    result = ljspy.run("record", "-d", "2s", "-o", svg, "-p", target.pid)
    assert result.returncode == ljspy.OK, result.stderr
    subprocess.run(["xmllint", "--noout", "--huge", svg], check=True, timeout=60)
    assert "<b>" not in svg.read_text()


def test_terminal_is_left_alone(target):
    result = ljspy.run("dump", "-p", target.pid)
    assert result.returncode == ljspy.OK, result.stderr
    assert ljspy.parse_dump(result.stdout)
    assert not controls(result.stdout + result.stderr)


def test_a_name_does_not_fill_the_disk(target, tmp_path):
    """ljspy cuts names of a megabyte."""
    ljspy.record(tmp_path, "-p", target.pid, seconds=2)
    assert max(map(len, (tmp_path / "profile.folded").read_text().splitlines())) < 10000


def test_command_name(runtime, tmp_path):
    """The program itself may have any name."""
    evil = tmp_path / "evil;\n\x1b[31m ) R 1 <b>.lua"
    evil.write_text("io.write('ready\\n') io.flush() while true do end")
    with ljspy.Target([ljspy.luajit(runtime), evil]) as target:
        target.wait_ready()
        recording = ljspy.record(tmp_path, "-p", target.pid, seconds=1)
        info = ljspy.run("info", "-p", target.pid)
    assert all(len(sample.frames) == 1 for sample in recording.samples)
    assert info.returncode == ljspy.OK
    assert not controls(info.stdout + recording.run.stderr)


@pytest.mark.parametrize("fate", ["there", "deleted"])
def test_a_name_that_ends_as_of_deleted_files(fate, tmp_path):
    """The kernel tells of deleted files so, and the name without that may be another file's."""
    (tmp_path / "jit").write_text("#!/bin/false\n")
    program = tmp_path / ("jit (deleted)" if fate == "there" else "jit")
    program.unlink(missing_ok=True)
    shutil.copy(ljspy.luajit("luajit"), program)
    script = tmp_path / "spins.lua"
    script.write_text("print('ready') io.stdout:flush() while true do end")
    with ljspy.Target([program, script]).wait_ready() as target:
        if fate == "deleted":
            program.unlink()
        info = ljspy.run("info", "-p", target.pid)
        stacks = ljspy.record_native(tmp_path, "-p", target.pid, seconds=1)
    assert info.returncode == ljspy.OK, info.stderr
    assert f"LuaJIT in {program}\n" in info.stdout
    modules = {frame for stack, _ in stacks for frame in stack if "[jit" in frame}
    assert modules and all(frame.endswith(f"[{program.name}]") for frame in modules)
