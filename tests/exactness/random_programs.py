#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Random programs for the judge of this folder: functions that go from Lua to C and back in every way.

random_programs.py SEED FOLDER

writes FOLDER/programs/random-SEED.lua. Functions call those before them: by calls and tail calls, in pcall and
xpcall, where errors end some, as coroutines that yield across all of it, from builtins, metamethods,
iterators, and from qsort() by the FFI. A line calls a builtin once, as the judge needs it.
"""

import pathlib
import random
import sys

FUNCTIONS = 7
CROSSINGS_MAX = 3  # in a function
HEAD = """\
-- SPDX-License-Identifier: MIT
-- Made by random_programs.py.
local ffi = require("ffi")
ffi.cdef("void qsort(void *, size_t, size_t, int (*)(const int *, const int *));")
local C, numbers = ffi.C, ffi.new("int[2]")

local function f0(x, ...)
	@ local y = x
	@ return y, ...
end

local function fails(n)
	@ if n > 0 then
		@ fails(n - 1)
		@ return
	end
	@ error("it fails")
end

local function handles(message)
	@ local x = f0(message)
	@ return x
end

local called

local function compares(a, b)
	@ local x = a[0]
	@ x = x - b[0]
	@ called(1)
	@ return x
end
local callback = ffi.cast("int (*)(const int *, const int *)", compares)

local function calls_back(g)
	@ called = g
	@ C.qsort(numbers, 2, 4, callback)
	@ return
end
jit.off(calls_back)
"""
# Lines of a function that call G, with the variable x.
CROSSINGS = (
    "@ x = {g}(x)",
    "@ x = {g}(x, x, x)",
    "@ x = select(2, {g}(x, 1)) or x",
    "@ ok = pcall({g}, x)",
    "@ ok = xpcall({g}, handles, x, 2)",
    "@ ok = pcall(fails, 2)\n\t@ {g}(x)",
    "@ ok = xpcall(fails, handles, 1)\n\t@ x = {g}(x)",
    "@ ok = pcall(pcall, {g}, x)",
    "@ ok = coroutine.resume(coroutine.create({g}), x)",
    "@ ok = coroutine.resume(coroutine.create(fails), 1)\n\t@ {g}(x)",
    """@ local co = coroutine.wrap(function(n)
		@ {g}(n)
		@ n = coroutine.yield(n)
		@ ok = pcall(function()
			@ coroutine.yield(n)
			@ {g}(n)
			@ error("again")
		end)
		@ return n
	end)
	@ co(1)
	@ co(2)
	@ co(3)""",
    """@ table.sort({{ 2, 1 }}, function(p, q)
		@ {g}(p)
		@ return p < q
	end)""",
    """@ ok = pcall(table.sort, {{ 2, 1 }}, function(p)
		@ {g}(p)
		@ fails(1)
	end)""",
    """@ ok = string.gsub("a", ".", function(c)
		@ {g}(1)
		@ return c
	end)""",
    """@ local object = setmetatable({{}}, {{ __index = function(_, key)
		@ {g}(key)
		@ return key
	end, __add = function(_, n)
		@ {g}(n)
		@ return n
	end, __call = function(_, n)
		@ {g}(n)
		@ return n
	end, __lt = function()
		@ {g}(1)
		@ return true
	end }})
	@ ok = {use}""",
    """@ for n in function(_, n)
		@ {g}(n)
		@ return n < 2 and n + 1 or nil
	end, nil, 0 do
		@ x = n
	end""",
    "@ calls_back({g})",
    """@ calls_back(function(n)
		@ ok = pcall({g}, n)
		@ ok = pcall(fails, 1)
	end)""",
)
USES = "object.key", "object[1]", "object + 1", "object(1)", "object < object"


def function(chance, number):
    yield ""
    yield f"local function f{number}(x, ...)"
    yield "\t@ local ok"
    for _ in range(chance.randint(1, CROSSINGS_MAX)):
        # Blocks keep the names of locals apart.
        crossing = chance.choice(CROSSINGS).format(g=f"f{chance.randrange(number)}", use=chance.choice(USES))
        yield "\tdo\n\t" + crossing.replace("\n", "\n\t") + "\n\tend"
    ends = "return", "return x, ...", f"return f{chance.randrange(number)}(x)", f"return f{chance.randrange(number)}(x, ...)"
    yield f"\t@ {chance.choice(ends)}\nend"


def program(seed):
    chance = random.Random(seed)
    lines = [line for number in range(1, FUNCTIONS) for line in function(chance, number)]
    return HEAD + "\n".join([*lines, "", "return function()", f"\t@ f{FUNCTIONS - 1}(1, 2)", "end", ""])


def keep(name, text, folder):
    """The program's name, as the judge takes it in the folder."""
    programs = pathlib.Path(folder) / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    (programs / f"{name}.lua").write_text(text)
    return name


def write(seed, folder):
    """Likewise."""
    return keep(f"random-{seed}", program(seed), folder)


if __name__ == "__main__":
    write(int(sys.argv[1]), sys.argv[2])
