# SPDX-License-Identifier: MIT
"""A process runs another program: each has its own CPU time, whichever thread calls execve()."""

import pathlib
import re
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

BEFORE_MS, AFTER_MS = 800, 500

SCRIPT = f"""
    local clock, begin = os.clock, os.clock()
    local function script_works()
        local n = 0
        while clock() - begin < {AFTER_MS / 1000} do for i = 1, 1e4 do n = n + i % 7 end end
        return n
    end
    local n = script_works()
    print("after " .. math.floor((clock() - begin) * 1000))
"""


@pytest.fixture(scope="module")
def execs(tmp_path_factory):
    program = tmp_path_factory.mktemp("execs") / "execs"
    source = pathlib.Path(__file__).parent / "execs.c"
    subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-pthread", source, "-o", program], check=True)
    return program


@pytest.mark.parametrize("thread", ["first", "second"])
def test_each_program_has_its_own_time(thread, execs, tmp_path):
    script = tmp_path / "script.lua"
    script.write_text(SCRIPT)
    command = [execs, thread, BEFORE_MS, ljspy.luajit("luajit"), script]
    recording = ljspy.record(tmp_path, "--", *command, seconds=40)
    said = recording.run.stdout
    before, after = (int(re.search(rf"^{word} (\d+)", said, re.MULTILINE)[1]) for word in ("before", "after"))
    of_script = ljspy.weight_of(recording.samples, ljspy.has_frame("script_works")) / 1000
    total = ljspy.weight_of(recording.samples) / 1000
    print(f"the script: {of_script:.0f} ms of {after}; all: {total:.0f} ms of {before + after}")
    assert 0.8 * after < of_script < 1.15 * after
    assert 0.85 * (before + after) < total < 1.15 * (before + after)
