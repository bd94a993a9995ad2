# SPDX-License-Identifier: MIT
"""Large programs without LuaJIT."""

import signal
import subprocess
import sys
import time

import pytest

import ljspy
from disk import Disk

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


def test_a_file_that_could_not_be_read_is_tried_again_as_a_file(library, tmp_path):
    """Its disk answers by then; its memory would bring all of it there."""
    with Disk(tmp_path, library) as disk:
        path = disk.directory / library.name
        with ljspy.Target([*disk.inside, sys.executable, "-c", PROGRAM, path, ljspy.luajit("luajit")]) as target:
            target.read_until(b"ready\n")
            disk.hang(library.name, forgets=True)
            before = resident_kb(target)
            recorder = ljspy.Recorder(tmp_path, "--tree", target.pid, seconds=60)
            time.sleep(2)
            disk.server.write("go on\n")
            time.sleep(8)  # it is tried again after a second, two, and four
            recorder.process.send_signal(signal.SIGINT)
            recorder.finish()
            assert resident_kb(target) - before < CODE_KB / 8
