# SPDX-License-Identifier: MIT
"""The function that Lua code calls stands right above the calling Lua line: functions of
the C library through the FFI, of C modules, and LuaJIT's own builtins."""

import collections
import pathlib
import re

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

SCRIPT = pathlib.Path(__file__).parent / "leaves.lua"
LINES = SCRIPT.read_text().splitlines()
MODULES = ljspy.PACKAGES / "lua-cjson/usr/lib/x86_64-linux-gnu/lua/5.1/?.so"

# For each Lua function: a pattern for the function it calls all the time, and the text of that call.
CALLS = {
    "heavy": (r"(__)?sqrt(_finite)? .*", "ffi.C.sqrt"),
    "searches": (r"string\.find \[builtin\]", "string.find"),
    "replaces": (r"string\.gsub \[builtin\]", "string.gsub"),
    "encodes": (r"cjson\.encode \[\S*cjson\.so\S*\]", "cjson.encode"),
}
# A square root takes a few cycles, many of them after the function has returned.
SQRT_SHARE = 0.02
OTHER_SHARE = 0.5
# To judge a share of so little takes some hundred samples; for the others, few are enough.
ENOUGH_US = collections.defaultdict(lambda: 30_000, heavy=200_000)
RECORDINGS_MAX = 15


@pytest.fixture
def target(runtime, jit):
    with ljspy.Target([ljspy.luajit(runtime), SCRIPT, jit, 50, MODULES], limit=300) as target:
        target.has_cjson = "no cjson" not in target.read_until(b"ready\n")
        yield target


def calls_of(target):
    return {function: call for function, call in CALLS.items() if function != "encodes" or target.has_cjson}


def line_of(text):
    return next(n for n, line in enumerate(LINES, 1) if text + "(" in line)


def record(target, directory, options=()):
    """Stacks of several recordings, until each function is often in them: on a busy machine one of them
    may have no sample of a function."""
    recorded = []
    for _ in range(RECORDINGS_MAX):
        recorded += ljspy.record_native(directory, "-p", target.pid, options=options)
        if all(sum(weight for *_, weight in pairs(recorded, function)) > ENOUGH_US[function]
               for function in calls_of(target)):
            break
    return recorded


def pairs(recorded, function):
    """Yields a Lua function's frames, the frame above each ("" for none), and weights."""
    for frames, weight in recorded:
        for frame, above in zip(frames, [*frames[1:], ""]):
            if frame.startswith(function + " "):
                yield frame, above, weight


def test_what_lua_calls_stands_above_it(target, tmp_path):
    recorded = record(target, tmp_path)
    for function, (pattern, _) in calls_of(target).items():
        weights = collections.Counter()
        for _, above, weight in pairs(recorded, function):
            weights[above] += weight
        share = SQRT_SHARE if function == "heavy" else OTHER_SHARE
        called = sum(weight for above, weight in weights.items() if re.fullmatch(pattern, above))
        assert called > share * sum(weights.values()), (function, weights)


def test_the_line_that_calls_is_shown(target, jit, tmp_path):
    """Interpreted code shows only that line; compiled code shows the nearest known line."""
    recorded = record(target, tmp_path, ["--lines"])
    for function, (pattern, call) in calls_of(target).items():
        lines = {
            int(frame.rpartition(":")[2])
            for frame, above, _ in pairs(recorded, function)
            if re.fullmatch(pattern, above)
        }
        assert line_of(call) in lines, function
        if jit == "off":
            assert lines == {line_of(call)}, function


@pytest.mark.usefixtures("gdb")
def test_native_frames_are_gdbs(runtime):
    """Native frames of the stripped luajit match gdb's; its exported functions have names."""
    with ljspy.Target([ljspy.luajit(runtime), SCRIPT, "off", 50, MODULES]).wait_ready() as target:
        assert ljspy.compare_with_gdb(target.pid)
