-- A tail call leaves no frame of its caller: the callee stands in its place and
-- under the name by which the first of them was called.
-- stack: main first@first
-- stack: main first@second
-- stack: main first@third spin
-- stack: main ping@ping spin
-- stack: main ping@pong
-- stack: main method@method
-- stack: main method@third spin
-- stack: main spread@spread
-- stack: main spread@third spin
-- stack: main library@library
-- stack: main [string.rep]!
-- stack: main guarded@guarded
-- stack: main [pcall] @third spin
local spin, ready = dofile("harness.lua")

local function third() -- @third
	local sum = spin()
	return sum
end

local function second(...) -- @second
	return third(...)
end

local function first() -- @first
	return second(1, 2)
end

local ping

local function pong(count) -- @pong
	return ping(count - 1)
end

function ping(count) -- @ping
	local sum = spin()
	if count == 0 then
		return sum
	end
	return pong(count)
end

local object = { third = third }
function object:method() -- @method
	return self.third()
end

local function spread(...) -- @spread
	return third(..., 1)
end

local function library(text) -- @library
	return string.rep(text, 100)
end

local function guarded() -- @guarded
	return pcall(third)
end

local finish = ready()
while os.clock() < finish do
	first()
	ping(5)
	object:method()
	spread(1, 2)
	library("tail")
	guarded()
end
-- SPDX-License-Identifier: MIT
