# SPDX-License-Identifier: MIT
"""C functions that compiled code calls stand on the Lua functions that called them."""

import pathlib

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = pathlib.Path(__file__).resolve().parent / "ffi.lua"
CALLERS = {"strlen": "measure", "memcmp": "compare"}


def test_each_call_is_its_callers(runtime, tmp_path):
    with ljspy.Target([ljspy.luajit(runtime), PROGRAM, 20]) as target:
        target.wait_ready()
        stacks = ljspy.record_native(tmp_path, "-p", target.pid)
    callers = set()
    for stack, _ in stacks:
        if "[libc.so.6]" not in stack[-1] or "os.clock [builtin]" in stack or "[lost" in stack[-2]:
            continue
        caller = stack[-2].split(" ")[0]
        callers.add(caller)
        # Not every C library names these.
        named = [by for function, by in CALLERS.items() if function in stack[-1]]
        assert caller in (named or CALLERS.values()), stack
    assert callers == set(CALLERS.values())
