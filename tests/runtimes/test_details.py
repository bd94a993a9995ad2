# SPDX-License-Identifier: MIT
"""Who catches errors, and what builtins work on, by programs that know."""

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

# Each function fails in its own way; the line that catches it is marked with its name.
ERRORS = """
local function by_pcall() error("x", 0) end
local function by_xpcall() error({}) end
local function by_resume() error("y") end
local function by_wrap() error("z") end
local function in_sort() error("s", 0) end
local function in_vm() return nil + 1 end
local function handled() error("h") end
local function spin(n) local sum = 0 for i = 1, n do sum = sum + i % 7 end return sum end
local function handler(e) return spin(300) end
local over = os.clock() + 0.6    -- of CPU time, however busy the machine is
while os.clock() < over do
	local _ = pcall(by_pcall)                            -- by_pcall
	_ = xpcall(by_xpcall, tostring)                      -- by_xpcall
	_ = coroutine.resume(coroutine.create(by_resume))    -- by_resume
	_ = pcall(coroutine.wrap(by_wrap))                   -- by_wrap
	_ = pcall(table.sort, { 1, 2, 3 }, in_sort)          -- in_sort
	_ = pcall(in_vm)                                     -- in_vm
	_ = xpcall(handled, handler)                         -- handled
end
"""
CATCHERS = {"by_pcall": "pcall", "by_xpcall": "xpcall", "by_resume": "coroutine.resume", "by_wrap": "pcall",
            "in_sort": "pcall", "in_vm": "pcall", "handled": "xpcall"}


def record(directory, *arguments):
    """Stacks of a program until it ends, root first, and their weights."""
    path = directory / "details.folded"
    result = ljspy.run("record", "-r", ljspy.HIGH_RATE, "-f", "folded", "-o", path, *arguments)
    assert result.returncode == ljspy.OK, result.stderr
    lines = [line.rpartition(" ") for line in path.read_text().splitlines()]
    return [(stack.split(";"), int(weight)) for stack, _, weight in lines]


def frame_of(program, name):
    """LuaJIT has no name for a function that pcall() calls."""
    line = next(number for number, line in enumerate(ERRORS.splitlines(), 1) if f"function {name}(" in line)
    return f"function <{program}:{line}>"


def caught_of(directory):
    """The program, and in words, for the frame of each of its functions that fail, who catches it."""
    program = directory / "errors.lua"
    program.write_text(ERRORS)
    lines = ERRORS.splitlines()
    return program, {
        frame_of(program, name): f"[caught by {catcher} at {program}:{next(i + 1 for i, line in enumerate(lines) if line.endswith(f'-- {name}'))}]"
        for name, catcher in CATCHERS.items()
    }


def raisers(stacks, program):
    """Of each stack with a catcher: the innermost function of the program below it, and the catcher."""
    for frames, weight in stacks:
        for at, frame in enumerate(frames):
            if frame.startswith("[caught"):
                yield [below for below in frames[:at] if str(program) in below][-1], frame, weight


def test_errors_are_caught_by_whom_the_program_says(tmp_path, runtime):
    program, expected = caught_of(tmp_path)
    stacks = record(tmp_path, "--detail", "--", ljspy.luajit(runtime), program)
    found = list(raisers(stacks, program))
    total = sum(weight for _, weight in stacks)
    assert sum(weight for _, _, weight in found) > total / 4
    wrong = [(name, frame) for name, frame, _ in found if name in expected and frame not in (expected[name], "[caught: unknown]")]
    assert not wrong, wrong[:5]
    known = {name for name, frame, _ in found if frame == expected.get(name)}
    assert known == set(expected), found[:20]
    unknown = sum(weight for _, frame, weight in found if frame == "[caught: unknown]")
    assert unknown < sum(weight for _, _, weight in found) / 10
    # The handler's time is the error's.
    handler = frame_of(program, "spin")
    assert any("[caught by xpcall" in below for frames, _ in stacks for below, above in zip(frames, frames[1:]) if above == handler)


def test_errors_are_left_out_unless_asked_for(tmp_path):
    program, _ = caught_of(tmp_path)
    stacks = record(tmp_path, "--", ljspy.luajit("luajit"), program)
    assert any(any(frame.startswith("error ") for frame in frames) for frames, _ in stacks)
    assert not any("caught" in frame for frames, _ in stacks for frame in frames)


IN_FLIGHT = """
local function fails() error("the secret") end
local function handler(e) io.write("ready\\n") io.flush() io.read() end
xpcall(fails, handler)
"""


def test_dump_shows_the_error_in_flight_and_its_value_if_asked(tmp_path, runtime):
    program = tmp_path / "flight.lua"
    program.write_text(IN_FLIGHT)
    with ljspy.Target([ljspy.luajit(runtime), program]).wait_ready() as target:
        assert ljspy.wait_until(lambda: ljspy.status_field(target.pid, "State") == "S")
        plain, *asked = (ljspy.run("dump", "-p", target.pid, *option).stdout
                         for option in ([], ["--detail"], ["--locals"]))
    caught = f"caught by xpcall at {program}:4]"
    assert f"    [{caught}\n    error [builtin]\n" in plain, plain
    assert "the secret" not in plain
    for text in asked:
        assert f'    [error "the secret", {caught}\n    error [builtin]\n' in text, text


BUILTINS = """
local short, long = ("a"):rep(300), ("a"):rep(30000)
local f = string.find
for i = 1, 80 do
	for j = 1, 5 do f(short, "a-b") end
	for j = 1, 5 do local _ = long:gsub("(%w)x", "") end
	os.execute("true secret")
end
"""


def test_builtins_show_their_pattern_and_command(tmp_path, runtime):
    program = tmp_path / "builtins.lua"
    program.write_text(BUILTINS)
    command = ["--clock", "wall", "--", ljspy.luajit(runtime), "-joff", program]
    seen = set()
    for frames, _ in record(tmp_path, "--detail", *command):
        for frame, above in zip(frames, frames[1:]):
            expected = {"string.find [builtin]": "[pattern a-b]", "string.gsub [builtin]": "[pattern (%w)x]",
                        "os.execute [builtin]": "[command true secret]"}.get(frame)
            assert expected is None or above == expected, frames
            seen.add(expected)
    assert seen >= {"[pattern a-b]", "[pattern (%w)x]", "[command true secret]"}
    plain = record(tmp_path, *command)
    assert any("os.execute [builtin]" in frames for frames, _ in plain)
    assert not any(word in frame for frames, _ in plain for frame in frames for word in ("secret", "a-b"))
