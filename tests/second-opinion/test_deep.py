# SPDX-License-Identifier: MIT
"""ljspy dump shows native stacks of any depth that the usual limit of 8 MiB allows, of threads without Lua, too."""

import pathlib
import re
import subprocess
import time

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

SOURCE = pathlib.Path(__file__).with_name("deep.c")
LUA = 'local ffi = require("ffi") ffi.cdef("int deep_begin(int);") ffi.load(arg[1]).deep_begin(tonumber(arg[2]))'
PAUSE = 34  # pause()'s number on x86-64
DEPTHS = 100, 3000, 15000  # 400 bytes each: samples take 1 MiB at most


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("deep") / "libdeep.so"
    subprocess.run(["gcc", "-std=c17", "-O1", "-fno-optimize-sibling-calls", "-shared", "-fPIC", "-pthread", "-o", path, SOURCE], check=True)
    return path


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "deep.lua"
    path.write_text(LUA)
    return path


def wait_for_pauses(pid):
    """Wait until two threads sleep in pause()."""
    while sum(call.read_text().startswith(f"{PAUSE} ") for call in pathlib.Path(f"/proc/{pid}/task").glob("*/syscall")) < 2:
        time.sleep(0.02)


@pytest.mark.parametrize("depth", DEPTHS)
def test_dump_goes_to_the_end(library, script, depth):
    with ljspy.Target([ljspy.luajit("luajit"), script, library, str(depth)]) as target:
        wait_for_pauses(target.pid)
        result = ljspy.run("dump", "--native", "all", "-p", target.pid)
    assert result.returncode == ljspy.OK, result.stderr
    stacks = re.split(r"(?m)^Thread ", result.stdout)[1:]
    assert len(stacks) == 2
    for stack in stacks:
        assert len(re.findall(r"(?m)^ +deep \[", stack)) == depth
        assert "[lost" not in stack
    assert sum("main chunk" in stack for stack in stacks) == 1
    assert sum("deep_thread" in stack for stack in stacks) == 1
