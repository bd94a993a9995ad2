# SPDX-License-Identifier: MIT
"""C functions that compiled code calls stand on the Lua functions that called them."""

import pathlib

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = pathlib.Path(__file__).resolve().parent / "ffi.lua"
CALLERS = {"strlen": "measure", "memcmp": "compare"}


def judge(stacks):
    """Check the callers of functions of the C library; return them."""
    callers = set()
    for stack, _ in stacks:
        if "[libc.so.6]" not in stack[-1] or "os.clock [builtin]" in stack or "[lost" in stack[-2]:
            continue
        caller = stack[-2].split(" ")[0]
        callers.add(caller)
        # Not every C library names these.
        named = [by for function, by in CALLERS.items() if function in stack[-1]]
        assert caller in (named or CALLERS.values()), stack
    return callers


def test_each_call_is_its_callers(runtime, tmp_path):
    callers = set()
    with ljspy.Target([ljspy.luajit(runtime), PROGRAM, ljspy.LIMIT_SECONDS]) as target:
        target.wait_ready()
        for _ in range(ljspy.RECORDINGS_MAX):
            callers |= judge(ljspy.record_native(tmp_path, "-p", target.pid))
            if callers == set(CALLERS.values()):
                break
    assert callers == set(CALLERS.values())
