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


IDENT = """.text
ret
.section .rodata
.fill {} * 128, 8, 0
.asciz "$Lua: Lua 5.1.5 Copyright (C) 1994-2012 Lua.org, PUC-Rio $"
.section .note.GNU-stack,"",%progbits
"""


def make_other_lua(path, kb_before):
    """What is found of PUC Lua, behind so much else."""
    source = path.with_suffix(".s")
    source.write_text(IDENT.format(kb_before))
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


LOADS_ALL = """
import ctypes, sys
for path in sys.argv[1:]:
    ctypes.CDLL(path)
print("ready", flush=True)
sys.stdin.read()
"""


def assert_runs_other_lua(libraries, tmp_path):
    with ljspy.Target([sys.executable, "-c", LOADS_ALL, *libraries]) as target:
        target.read_until(b"ready\n")
        before = resident_kb(target)
        result = ljspy.run("record", "-p", target.pid, "-d", "1s", "-o", tmp_path / "x.folded")
        assert result.returncode == ljspy.NOTHING_PROFILED
        assert "it runs PUC Lua 5.1" in result.stderr
        return resident_kb(target) - before


def test_another_lua_is_found_behind_many_libraries(tmp_path):
    """What comes last in each is read in its file, too."""
    other_lua = make_other_lua(tmp_path / "liblua.so", 1)
    library = make_other_lua(tmp_path / "first.so", 96)
    contents = library.read_bytes().replace(b"$Lua: Lua 5.1.5", b"$Not: Lua 5.1.5")
    libraries = []
    for i in range(200):
        libraries.append(tmp_path / f"library{i}.so")
        libraries[-1].write_bytes(contents)
    # The loader puts each before the last one, and ljspy begins with the first.
    assert assert_runs_other_lua([other_lua, *libraries], tmp_path) < 8 << 10


def test_another_lua_is_found_in_a_file_that_seems_to_be_deleted(tmp_path):
    """Its name ends as the kernel tells of deleted files: it is opened all the same."""
    other_lua = make_other_lua(tmp_path / "liblua.so", 12 << 10)
    path = tmp_path / "liblua.so (deleted)"
    other_lua.rename(path)
    assert assert_runs_other_lua([path], tmp_path) < 4 << 10
