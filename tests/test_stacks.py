# SPDX-License-Identifier: MIT
"""The judge of stacks must condemn wrong ones."""

import pytest

import stacks

SOURCE = """\
-- stack: main foo@foo (heavy@heavy! | @anonymous heavy@heavy!)
-- stack: main [table.sort]! (@compare (spin)?)?
-- stack: main recurse@recurse{2,4} heavy@heavy!
-- stack: main left@foo right@foo* heavy@heavy!
-- stack: main main{other} {stripped} "(for generator)"@heavy /odd .*/!
function heavy() -- @heavy
function foo() -- @foo
function recurse() -- @recurse
sort(function() -- @compare
f = function() -- @anonymous
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "harness.lua").write_text((stacks.PROGRAMS / "harness.lua").read_text())
    path = tmp_path / "p.lua"
    path.write_text(SOURCE)
    return stacks.Program(path)


SPIN = stacks.Program(stacks.PROGRAMS / "main.lua").line_of("spin", "harness.lua")


@pytest.mark.parametrize(
    "stack, verdict",
    [
        ("main chunk p.lua;foo p.lua:7;heavy p.lua:6", "whole"),
        ("main chunk p.lua;foo p.lua:7;function <p.lua:10>;heavy p.lua:6", "whole"),
        ("main chunk p.lua;table.sort [builtin]", "whole"),
        (f"main chunk p.lua;table.sort [builtin];function <p.lua:9>;spin harness.lua:{SPIN}", "whole"),
        ("main chunk p.lua;recurse p.lua:8;recurse p.lua:8;heavy p.lua:6", "whole"),
        ("main chunk p.lua;left p.lua:7;heavy p.lua:6", "whole"),
        ("main chunk p.lua;left p.lua:7;right p.lua:7;right p.lua:7;heavy p.lua:6", "whole"),
        ("main chunk p.lua;main chunk other;function <stripped>;(for generator) p.lua:6;odd one", "whole"),
        ("main chunk p.lua;os.clock [builtin]", "whole"),
        # Native frames and the VM's do not count.
        ("_start [luajit];main chunk p.lua;lua_pcall [libluajit-5.1.so.2];foo p.lua:7;heavy p.lua:6;lj_BC_ADDVV [vm]", "whole"),
        # On the way to a place of work.
        ("main chunk p.lua", "short"),
        ("main chunk p.lua;foo p.lua:7", "short"),
        ("main chunk p.lua;recurse p.lua:8", "short"),
        ("main chunk p.lua;recurse p.lua:8;recurse p.lua:8;recurse p.lua:8;recurse p.lua:8", "short"),
        ("main chunk p.lua;foo p.lua:7;function <p.lua:10>", "short"),
        # A frame missing, too many, in the wrong place, or with the wrong name, file or line.
        ("", "wrong"),
        ("main chunk p.lua;heavy p.lua:6", "wrong"),
        ("foo p.lua:7;heavy p.lua:6", "wrong"),
        ("main chunk p.lua;foo p.lua:7;foo p.lua:7;heavy p.lua:6", "wrong"),
        ("main chunk p.lua;main chunk p.lua;foo p.lua:7", "wrong"),
        ("main chunk p.lua;foo p.lua:7;heavy p.lua:6;heavy p.lua:6", "wrong"),
        ("main chunk p.lua;heavy p.lua:6;foo p.lua:7", "wrong"),
        ("main chunk p.lua;recurse p.lua:8;heavy p.lua:6", "wrong"),
        ("main chunk p.lua;" + "recurse p.lua:8;" * 5 + "heavy p.lua:6", "wrong"),
        ("main chunk p.lua;bar p.lua:7;heavy p.lua:6", "wrong"),
        ("main chunk p.lua;foo p.lua:8;heavy p.lua:6", "wrong"),
        ("main chunk p.lua;foo p.lua:77;heavy p.lua:6", "wrong"),
        ("main chunk p.lua;foo q.lua:7;heavy p.lua:6", "wrong"),
        ("main chunk q.lua", "wrong"),
        ("main chunk p.lua;foo p.lua:7;compare p.lua:9", "wrong"),
        ("main chunk p.lua;table.concat [builtin]", "wrong"),
        ("main chunk p.lua;foo p.lua:7;table.sort [builtin]", "wrong"),
        # Lost frames excuse only their own place.
        ("main chunk p.lua;foo p.lua:7;[lost: no unwind table]", "lost"),
        ("main chunk p.lua;[lost: torn];heavy p.lua:6", "lost"),
        ("[lost: torn]", "lost"),
        ("main chunk p.lua;[lost: torn];function <p.lua:7>;heavy p.lua:6;[lost: not stopped]", "lost"),
        (f"[lost: torn];function <harness.lua:{SPIN}>", "lost"),
        ("[lost: torn];function <p.lua:77>", "wrong"),
        ("[lost: torn];foo p.lua:7;function <p.lua:6>", "wrong"),
        ("main chunk p.lua;function <p.lua:7>;[lost: torn]", "wrong"),
        ("main chunk p.lua;bar p.lua:7;[lost: torn]", "wrong"),
        ("main chunk p.lua;[lost: torn];heavy p.lua:6;foo p.lua:7", "wrong"),
        # A coroutine's view of itself.
        ("...;function <p.lua:10>;heavy p.lua:6", "whole"),
        ("...;heavy p.lua:6;function <p.lua:10>", "wrong"),
    ],
)
def test_verdict(program, stack, verdict):
    assert program.judge(stacks.parse_stack(stack)) == verdict


def test_compiled_leaf_must_still_be_legal(program):
    assert program.judge(stacks.parse_stack("main chunk p.lua;heavy p.lua:6_[j]")) == "wrong"


def test_compiled_caller_does_not_excuse_an_interpreted_leaf(program):
    sample = stacks.parse_stack("main chunk p.lua_[j];foo p.lua:7")
    assert not sample.compiled
    assert program.judge(sample) == "short"


def test_folded_line():
    (sample,) = stacks.parse_folded('main chunk [string "x = 1"];string.rep [builtin];memcpy [libc.so.6] 4000\n')
    assert sample == (('main chunk [string "x = 1"]', "string.rep [builtin]"), False, 4000)


@pytest.mark.parametrize("line", ["main chunk p.lua", "main chunk p.lua 4 ms", "4000", " 4000", ""])
def test_malformed_folded_line(line):
    with pytest.raises(ValueError):
        stacks.parse_folded(line + "\n")


@pytest.mark.parametrize("expression", ["main (foo@foo", "main foo@foo)", "main @nowhere", "main ?foo &", "* main"])
def test_malformed_expression(tmp_path, expression):
    path = tmp_path / "p.lua"
    path.write_text(f"-- stack: {expression}\nfunction foo() -- @foo\n")
    with pytest.raises(ValueError):
        stacks.Program(path)


LINES = stacks.Program(stacks.PROGRAMS / "lines.lua")


def lines_sample(call, leaf, weight):
    main = f"main chunk lines.lua:{LINES.line_of('main_call')}"
    return stacks.parse_stack(f"{main};outer lines.lua:{call};inner lines.lua:{leaf}", weight)


@pytest.mark.parametrize(
    "call, leaf, unknown, wanted",
    [
        ("first_call", "inner_busy", 0, []),
        ("first_call", "inner_busy", 3, []),
        ("first_call", "inner_busy", 4, ["a line unknown in 4.0%"]),
        ("main_call", "inner_busy", 0, ["('outer lines.lua', False) at {%d}", "('outer lines.lua', False) never at first_call"]),
    ],
    ids=("right", "few-unknown", "too-many-unknown", "wrong"),
)
def test_lines_are_judged(call, leaf, unknown, wanted):
    """Of a hundred samples of equal weight."""
    call, leaf = LINES.line_of(call), LINES.line_of(leaf)
    samples = [lines_sample(call, leaf, 100 - unknown), lines_sample(call, "?", unknown)]
    complaints = stacks.line_complaints(samples, 100)
    assert complaints == [text % call if "%d" in text else text for text in wanted]
