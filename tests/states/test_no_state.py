# SPDX-License-Identifier: MIT
"""A process has loaded LuaJIT and has no state: none yet, or it has closed the last one."""

import sys

import pytest

import ljspy
from test_later import LIBRARY

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.luaL_newstate.restype = ctypes.c_void_p
if sys.argv[2] == "closed":
    library.lua_close(ctypes.c_void_p(library.luaL_newstate()))
print("ready", flush=True)
while True:
    sum(range(1000))
"""


@pytest.fixture(params=["none yet", "closed"])
def target(request):
    with ljspy.Target([sys.executable, "-c", PROGRAM, LIBRARY, request.param]) as target:
        yield target.wait_ready()


def test_heap_says_so(target):
    run = ljspy.run("heap", "-p", target.pid)
    assert run.returncode == ljspy.NOTHING_PROFILED
    assert f"No Lua state is known in process {target.pid}" in run.stderr


def test_check_says_nothing_of_the_compiler(target):
    run = ljspy.run("check", "-d", "1s", "-p", target.pid)
    assert "compiled code: no Lua state is known" in run.stdout, run.stderr
    assert "no compiler" not in run.stdout
