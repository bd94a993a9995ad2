-- callees.lua WAY: calls a function of the chunk "work" in one of several ways. In most of them LuaJIT checks
-- what it read elsewhere than the bytecode did. Nearly all time is that function's, which has no snapshot.
local step = "x = x * 1.0%d + %d.5 - x / 3.%d\n"

local function made(name, parameters, first, last)
	local lines = { "return function(" .. parameters .. ")\n" }
	for i = first, last do
		lines[#lines + 1] = step:format(i, i, i)
	end
	lines[#lines + 1] = "return x end"
	return assert(loadstring(table.concat(lines), "=" .. name))()
end

local library = {
	work = made("work", "x", 1, 40),
	method = made("work", "self, x", 1, 40),
}
local others = { rest = made("rest", "x", 50, 54) }

local ways = {
	field = "s = library.work(s)",
	call_of_upvalue = "s = object(s)",
	call_beside_builtin = "s = object(s)\ny = floor(y)",
	call_of_field = "s = fields.object(s)",
	call_of_global = "s = global_object(s)",
	index_function = "s = inherits.anything(s)",
	stored_field = "s = ({ called = library.work }).called(s)",
	stored_method = "s = new(library.method):called(s)",
	stored_upvalue = "stored = library.work s = stored(s)",
}

local object = setmetatable({}, { __call = library.method })
global_object = object
local program = [[
local library, others, object = ...
local fields, stored = { object = object }, nil
local inherits = setmetatable({}, { __index = function() return library.work end })
local function new(f) return { called = f } end
return function(s)
	local y, floor = 0, math.floor
	for i = 1, 1e5 do
		y = y * 0.5 + i
		%s
		s = s * 0.25
		s = others.rest(s)
	end
	return s
end]]
local run = assert(loadstring(program:format(ways[arg[1]]), "=run"))(library, others, object)

local s = run(0)
print("ready")
io.stdout:flush()
while true do
	s = run(s)
end
-- SPDX-License-Identifier: MIT
