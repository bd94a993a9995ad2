# SPDX-License-Identifier: MIT
"""Random Lua programs whose frames have variables of all kinds."""

import random

NAMES = ["a", "b", "count", "name", "t", "_x", "value2"]


def string(chance):
    """A literal with any bytes, some long."""
    length = chance.choice((0, 1, 5, 20, 39, 40, 41, 79, 80, 81, 300))
    bytes_ = chance.choice(("plain", "plain", "any"))
    if bytes_ == "plain":
        return '"' + "".join(chance.choice("abc xyz=09") for _ in range(length)) + '"'
    return '"' + "".join(f"\\{chance.randrange(0, 128):03d}" for _ in range(length)) + '"'


def number(chance):
    return chance.choice((
        "0", "-0.0", "1", "-1", "2147483647", "-2147483648", "2147483648", "0.1", "1e300", "-1e-300", "1/0",
        "-1/0", str(chance.randrange(-10**6, 10**6)), repr(chance.uniform(-1e3, 1e3)), "2^53", "2^53+1", "1/3",
    ))


def table(chance, depth):
    entries = []
    for _ in range(chance.choice((0, 1, 2, 3, 5, 6, 9))):
        form = chance.randrange(4)
        item = value(chance, depth + 1)
        if form == 0:
            entries.append(item)
        elif form == 1:
            entries.append(f"{chance.choice(NAMES)} = {item}")
        elif form == 2:
            entries.append(f"[{string(chance)}] = {item}")
        else:
            entries.append(f"[{chance.choice(('-1', '0', '0.5', 'true', '100', '3'))}] = {item}")
    return "{" + ", ".join(entries) + "}"


def value(chance, depth=0):
    kinds = ["nil", "boolean", "number", "number", "string", "string", "function", "cdata"]
    kind = chance.choice(kinds + ["table"] * 3 if depth < 2 else kinds)
    if kind == "nil":
        return "nil"
    if kind == "boolean":
        return chance.choice(("true", "false"))
    if kind == "number":
        return number(chance)
    if kind == "string":
        return string(chance)
    if kind == "function":
        return chance.choice(("function() end", "shared", "print", "string.gsub")) if depth == 0 else "shared"
    if kind == "cdata":
        return chance.choice((f"{chance.randrange(2**62)}LL", f"{chance.randrange(2**64)}ULL", "-1LL")) if depth == 0 else "1"
    return table(chance, depth)


def declarations(chance, indent):
    """Locals, some in blocks that end before the call, some hidden by others of the same name."""
    lines = []
    for _ in range(chance.randrange(5)):
        names = [chance.choice(NAMES) for _ in range(chance.randrange(1, 4))]
        values = [value(chance) for _ in range(chance.randrange(len(names) + 1))]
        line = f"local {', '.join(names)}" + (f" = {', '.join(values)}" if values else "")
        if chance.random() < 0.2:
            lines.append(f"{indent}do {line} local gone = {number(chance)} end")
        else:
            lines.append(indent + line)
    if chance.random() < 0.3:
        lines.append(f"{indent}up{chance.randrange(4)} = {value(chance)}")
    return lines


# The program says the truth on the line where it then stays. It changes `spun`, and nothing else.
BUSY = (
    "local spun = 0 tell() while true do spun = spun + 1 end",
    "local spun = 0 tell() while true do spun = leaf(spun, shared) end",
    "local spun = {} tell() while true do spun = {spun[1], shared} end",
    "local spun = '' tell() while true do spun = ('x'):rep(#spun % 7) .. 'y' end",
    "local spun = 0 for i = 1, 1e15 do if i == 1 then tell() end spun = spun + i % 3 end",
)


def call(chance, number_, last, busy):
    """A call of the next function, whichever way."""
    arguments = ", ".join(value(chance) for _ in range(chance.randrange(5)))
    if last:
        return [chance.choice(BUSY)] if busy else ["park()"]
    name = f"f{number_ + 1}"
    form = chance.randrange(9)
    if form == 0:
        return [f"local r = {name}({arguments})", "return r"]
    if form == 1:
        return [f"pcall({name}{', ' if arguments else ''}{arguments})"]
    if form == 2:
        return [f"for i = {chance.randrange(5)}, 7, {chance.choice((1, 2, 0.5))} do {name}({arguments}) end"]
    if form == 3:
        return [f"for k, v in pairs({{x = 1, 2}}) do {name}({arguments}) end"]
    if form == 4:
        return [f"local object = setmetatable({{}}, {{__index = function(o, key) {name}(key) end}})", "local got = object.field"]
    if form == 5:
        return [f"table.sort({{2, 1, 3}}, function(x, y) {name}(x, y) return x < y end)"]
    if form == 6:
        return [f"do local c = coroutine.create({name})", f"note() coroutine.resume(c{', ' if arguments else ''}{arguments}) end"]
    if form == 7:
        return [f"return {name}({arguments})"]
    return [f"{name}({arguments})"]


def program(seed, busy=False):
    chance = random.Random(seed)
    depth = chance.randrange(2, 8)
    lines = ["local truth = require('truth')", "local park, note, tell = truth.park, truth.note, truth.tell",
             "local function shared() end", "local function leaf(n, f) local same = f return n + 1 end"]
    lines += [f"local up{i} = {value(chance)}" for i in range(4)]
    lines += ["local " + ", ".join(f"f{i}" for i in range(depth))]
    for i in range(depth):
        parameters = [f"p{j}" for j in range(chance.randrange(4))] + (["..."] if chance.random() < 0.4 else [])
        lines.append(f"f{i} = function({', '.join(parameters)})")
        lines += declarations(chance, "  ")
        used = [f"up{j}" for j in range(4) if chance.random() < 0.4]
        if used:
            lines.append(f"  local copies = {{{', '.join(used)}}}")
        lines += ["  " + line for line in call(chance, i, i == depth - 1, busy)]
        lines.append("end")
    lines.append("f0(" + ", ".join(value(chance) for _ in range(chance.randrange(4))) + ")")
    return "\n".join(lines) + "\n"
