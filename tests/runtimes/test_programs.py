# SPDX-License-Identifier: MIT
"""LuaJIT's own debug library confirms the programs' lists of legal stacks, independently
of ljspy."""

import subprocess

import pytest

import ljspy
import stacks

PROGRAMS = {program.name: program for program in stacks.all_programs()}


@pytest.mark.parametrize("name", [n for n, program in PROGRAMS.items() if not program.setting("no-testimony")])
def test_testimony_is_on_the_list(runtime, name):
    program = PROGRAMS[name]
    result = subprocess.run(
        [ljspy.luajit(runtime), f"{name}.lua", "off", "1", "testify"],
        cwd=stacks.PROGRAMS, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    lines = result.stdout.splitlines()
    verdicts = {line: program.judge(stacks.parse_stack(line)) for line in set(lines[1:])}
    assert not [line for line, verdict in verdicts.items() if verdict == "wrong"]
    assert "whole" in verdicts.values()


@pytest.mark.parametrize("name", [n for n, program in PROGRAMS.items() if program.parks])
def test_parked_stack_is_on_the_list(runtime, name):
    program = PROGRAMS[name]
    stacks_seen = {stack for _, stack, _ in ljspy.parks(runtime, name)}
    assert stacks_seen
    wrong = [s for s in stacks_seen if program.judge(stacks.parse_stack(s)) == "wrong"]
    assert not wrong
