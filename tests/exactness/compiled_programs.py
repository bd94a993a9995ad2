#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Random programs for the judge of this folder that LuaJIT compiles: loops and recursion, full of calls.

compiled_programs.py SEED FOLDER

writes FOLDER/programs/compiled-SEED.lua. Functions call those before them: by upvalues, closures,
methods, metamethods, pcall, tail calls, coroutines and sort(). Branches make side traces; builtins
that LuaJIT does not compile have traces stitched together, or end them. A function knows what it
costs, so that all stacks of a round can be learnt.
"""

import random
import sys

import random_programs

LINES_MAX = 4000  # that a round runs
# Of these, a function has some more than the one before it.
LINES_FIRST, LINES_GROWTH = 40, 1.9
DEPTH_MAX = 3  # of loops and branches
CALLEES = 4  # the latest functions are likely to be called
HEAD = random_programs.HEAD + """
local floor, band, wrap, yield = math.floor, bit.band, coroutine.wrap, coroutine.yield
local list, record = { 3, 1, 4, 1, 5, 9, 2, 6 }, { a = 1, b = 2, c = 3 }
local pairs_of = ffi.new("struct { int n; }[8]")
"""
# Lines that call no function of the program; v is a variable.
PLAIN = (
    "x = x + {v}",
    "x = floor(x / 2) + {v}",
    "x = band(x * 3 + {v}, 63)",
    "list[{v} % 8 + 1] = list[{v} % 8 + 1]",
    "pairs_of[band({v}, 7)].n = x",
    "record.a = {v}",
    "x = #table.concat(list, ',')",
    "x = #tostring(x)",
    "x = #string.format('%d', {v})",
    "x = select('#', ...) + x",
    "x = x % 31 + unpack(list)",
    "s = string.sub(s .. {v}, -4)",
    "s = string.gsub('abc', '%a', '%0')",
    "ok = next(record)",
    "if {v} % 3 == 0 then x = x + 1 end",
)
# Lines that call g, or a metamethod of object that does.
CALLS = (
    "x = {g}(x) or 1",
    "x = ({g}({v}) or 1) + {v}",
    "x = select(2, {g}(x, 1)) or x",
    "{g}({v}, x, ...)",
    "if {v} % 2 == 0 then {g}({v}) end",
    "ok = pcall({g}, x)",
    "ok = pcall(pcall, {g}, x)",
    "ok = xpcall({g}, handles, {v})",
    "@ local h = {v} % 2 == 0 and {g} or f0\n@ x = h(x) or 1",
    "@ local t = {{ {g}(x, ...) }}\n@ x = #t",
    "x = object.key",
    "x = object[{v}]",
    "x = object + {v}",
    "x = object({v})",
    "ok = object <= object",
    "ok = object .. 'a'",
    "object.new = {v}",
    "x = object:method({v})",
)
# The same; these end traces.
INTERPRETED = (
    "@ ok = pcall(fails, 2)\n@ {g}({v})",
    "@ local h = function(...)\n\t@ return {g}(...)\nend\n@ x = h(x, {v}) or 1",
    "@ table.sort({{ 2, 1 }}, function(p, q)\n\t@ {g}(p)\n\t@ return p < q\nend)",
    "@ for n in wrap(function()\n\t@ {g}(1)\n\t@ yield(1)\nend) do\n\t@ x = n\nend",
    "calls_back({g})",
)
# How a loop begins and ends, and how often it runs.
LOOPS = (
    ("@ for {v} = 1, 5 do", "end", 5),
    ("@ for {v} = 4, 1, -1 do", "end", 4),
    ("@ for {v} in ipairs(list) do", "end", 8),
    ("@ for _, {v} in pairs(record) do", "end", 3),
    ("@ for _, {v} in next, record do", "end", 3),
    ("@ local {v} = 4\n@ while {v} > 0 do\n@ {v} = {v} - 1", "end", 4),
    ("@ local {v} = 0\nrepeat\n@ {v} = {v} + 1", "until {v} > 3", 4),
    ("@ local {v} = 0\n::to_{v}::\n@ {v} = {v} + 1", "@ if {v} < 4 then goto to_{v} end", 4),
)
OBJECT = """
local object = setmetatable({ method = function(_, y)
	@ {g}(y)
	@ return y
end }, {"""
METAMETHODS = "__index", "__add", "__call", "__le", "__concat", "__newindex"


class Program:
    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.costs = {"f0": 3}
        self.object_cost = 0
        self.variables = 0
        # How many calls end traces.
        self.interpreted = self.chance.choice((0, 0, 0.1, 0.4))

    def callee(self, budget):
        found = [name for name, cost in self.costs.items() if cost < budget]
        return self.chance.choice(found[-CALLEES:]) if found else None

    def lines(self, template, **names):
        """Most lines store a position. What has several says so itself."""
        if "\n" not in template and self.chance.random() < 0.7:
            template = "@ " + template
        return template.format(**names).split("\n")

    def statement(self, variables, budget, depth):
        """Its lines and what they cost."""
        chance = self.chance
        if depth < DEPTH_MAX and budget > 16 and chance.random() < 0.5:
            begin, end, times = chance.choice(LOOPS)
            self.variables += 1
            variable = f"i{self.variables}"
            body, cost = self.statements([*variables, variable], budget // times - 3, depth + 1)
            # Blocks keep the names of locals and labels apart, and no local may follow a label.
            return ["do", *begin.format(v=variable).split("\n"), "do", *body, "end",
                    end.format(v=variable), "end"], (cost + 3) * times
        variable = chance.choice(variables)
        callee = self.callee(budget - 3)
        if callee and chance.random() < 0.7:
            calls = INTERPRETED if chance.random() < self.interpreted else CALLS
            template = chance.choice(calls)
            cost = self.object_cost if "object" in template else 2 * self.costs[callee] + 4
            if cost <= budget:
                return ["do", *self.lines(template, v=variable, g=callee), "end"], cost
        return ["do", *self.lines(chance.choice(PLAIN), v=variable), "end"], 2

    def statements(self, variables, budget, depth):
        lines, cost = [], 0
        for _ in range(self.chance.randint(1, 3)):
            more, its_cost = self.statement(variables, budget - cost, depth)
            lines += more
            cost += its_cost
        return lines, cost

    def object(self, budget):
        """Methods and metamethods, that the functions after it call."""
        used = [self.callee(budget // 6) or "f0" for _ in range(len(METAMETHODS) + 1)]
        self.object_cost = 6 + 2 * max(self.costs[name] for name in used)
        yield OBJECT.replace("{g}", used[0])
        for name, callee in zip(METAMETHODS, used[1:]):
            end = self.chance.choice(("1", f"{callee}(2)"))
            yield f"\t{name} = function()\n\t\t@ local z = {callee}(1)\n\t\t@ return {end}\n\tend,"
        yield "})"

    def function(self, number, budget):
        chance = self.chance
        yield from self.object(budget)
        times = chance.choice((1, 1, 1, 3, 12))  # it calls itself
        body, cost = self.statements(["x"], budget // times - 8, 0 if times == 1 else 2)
        name = f"f{number}" if times == 1 else f"again{number}"
        yield f"\nlocal {name}\nfunction {name}(x, n, ...)"
        yield "\t@ local ok, s = nil, 'a'\n\tx = (tonumber(x) or 1) % 97"
        yield from ("\t" + line for line in body)
        if times > 1:
            again = chance.choice((f"return {name}(x, n - 1)", f"x = 1 + {name}(x, n - 1)",
                                   f"ok, x = pcall({name}, x, n - 1)"))
            yield f"\t@ if n > 1 then\n\t\t@ {again}\n\tend\n\t@ return x\nend"
            yield f"local function f{number}(x, ...)\n\t@ x = {name}(x, {times})"
        callee = self.callee(budget - cost * times)
        ends = ["x", "x, 1", "x, ..."]
        if callee:
            ends += [f"{callee}(x)", f"{callee}(x, ...)"]
        yield f"\t@ return {chance.choice(ends)}\nend"
        self.costs[f"f{number}"] = (cost + 8) * times + (self.costs[callee] if callee else 0)

    def text(self):
        budget, lines = LINES_FIRST, [HEAD]
        count = self.chance.randint(3, 6)
        for number in range(1, count + 1):
            budget *= LINES_GROWTH
            lines += self.function(number, int(budget))
        lines += ["", "return function()", "\t@ for i = 1, 2 do"]
        left = LINES_MAX
        for number in range(count, 0, -1):
            left -= 2 * self.costs[f"f{number}"]
            if left > 0:
                lines.append(f"\t\t@ f{number}(i)")
        lines.append("\tend")
        if self.chance.random() < 0.2:
            lines.append("\t@ jit.flush()")
        return "\n".join([*lines, "end", ""])


def write(seed, folder):
    """The program's name, as the judge takes it in the folder."""
    return random_programs.keep(f"compiled-{seed}", Program(seed).text(), folder)


if __name__ == "__main__":
    write(int(sys.argv[1]), sys.argv[2])
