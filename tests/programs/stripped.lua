-- Bytecode without debug information has neither lines nor names of variables;
-- globals and fields keep theirs, being constants. Nothing tells a main chunk from
-- another function that takes any number of arguments.
-- stack: main stripped{stripped}! ({stripped}! | (global_name{stripped} | field_name{stripped}) ({stripped}!)?)?
-- stack: main unnamed_chunk@unnamed_chunk /unnamed .*/! (/.+/! | /(global|field)_name .*/ (/.+/!)?)?
local _, ready = dofile("harness.lua")

local source = [[
local object = {}
local function heavy(n, ...)
	local sum = 0
	for i = 1, n do sum = sum + i % 7 end
	return sum
end
function global_name(...) return 1 + heavy(300) end
object.field_name = global_name
global_name()
object.field_name()
heavy(300)
]]

local bytecode = string.dump(loadstring(source), true)
local stripped = load(bytecode, "=stripped")
local unnamed = loadstring(bytecode)

-- The name of a chunk that was given none differs between versions.
local function unnamed_chunk() -- @unnamed_chunk
	unnamed()
	return 1
end

local finish = ready()
while os.clock() < finish do
	stripped()
	unnamed_chunk()
end
-- SPDX-License-Identifier: MIT
