# SPDX-License-Identifier: MIT
"""Large programs without LuaJIT."""

import subprocess
import sys

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

CODE_KB = 64 << 10


@pytest.fixture
def library(tmp_path):
    """Much code that nobody runs."""
    source, path = tmp_path / "large.s", tmp_path / "large.so"
    source.write_text(f'.text\n.fill {CODE_KB} * 128, 8, 0x9090909090909090\n.section .note.GNU-stack,"",%progbits\n')
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", path, source], check=True)
    return path


def resident_kb(target):
    return int(ljspy.status_field(target.pid, "RssFile"))


PROGRAM = """
import ctypes, subprocess, sys, time
ctypes.CDLL(sys.argv[1])
child = subprocess.Popen(["timeout", "60", sys.argv[2], "-e", "while true do end"])
print("ready", flush=True)
sys.stdin.read()
child.terminate()
"""


def test_searching_a_program_leaves_its_code_where_it_is(library, tmp_path):
    """To read it in the program's memory would bring all of it there."""
    with ljspy.Target([sys.executable, "-c", PROGRAM, library, ljspy.luajit("luajit")]) as target:
        target.read_until(b"ready\n")
        before = resident_kb(target)
        result = ljspy.run("record", "--tree", target.pid, "-d", "1s", "-o", tmp_path / "x.folded")
        assert result.returncode == ljspy.OK, result.stderr
        assert resident_kb(target) - before < CODE_KB / 8


def test_it_is_not_brought_there_to_look_for_another_lua(library, tmp_path):
    with ljspy.Target([sys.executable, "-c", PROGRAM, library, ljspy.luajit("luajit")]) as target:
        target.read_until(b"ready\n")
        before = resident_kb(target)
        result = ljspy.run("record", "-p", target.pid, "-d", "1s", "-o", tmp_path / "x.folded")
        assert result.returncode == ljspy.NOTHING_PROFILED
        assert "does not run LuaJIT, as far as can be seen" in result.stderr
        assert resident_kb(target) - before < CODE_KB / 4
