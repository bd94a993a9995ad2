-- A coroutine stands on whoever resumed it.
-- stack: main [coroutine.wrap_aux] @producer (spin | [coroutine.yield] | relay@relay (spin | [coroutine.yield])?)?
-- stack: main [coroutine.wrap]
-- stack: main [coroutine.create]
-- stack: main [coroutine.resume] @outer (spin | [coroutine.create] | [coroutine.resume] @middle (spin | [coroutine.yield] | [coroutine.wrap] | [coroutine.wrap_aux] @inner (spin | [coroutine.yield])?)?)?
-- stack: main step@step (spin | [coroutine.resume] @endless (spin | [coroutine.yield] | [pcall] @yielder (spin | [coroutine.yield])?)?)?
-- stack: main [coroutine.resume] @failing (spin | [error]!)?
-- stack: main [coroutine.status]
-- stack: main [table.sort] @compare (spin | [coroutine.wrap_aux] @forever (producer@producer (spin | [coroutine.yield] | relay@relay (spin | [coroutine.yield])?)?)?)?
local spin, ready = dofile("harness.lua")

local function relay(value) -- @relay
	spin()
	coroutine.yield(value)
	spin()
end

local function producer() -- @producer
	for i = 1, 3 do
		spin()
		coroutine.yield(i)
		relay(i)
	end
end

local function inner() -- @inner
	spin()
	coroutine.yield(1)
	spin()
end

local function middle() -- @middle
	spin()
	local step = coroutine.wrap(inner)
	step()
	coroutine.yield(2)
	step()
end

local function outer() -- @outer
	spin()
	local thread = coroutine.create(middle)
	coroutine.resume(thread)
	spin()
	coroutine.resume(thread)
end

local function yielder() -- @yielder
	spin()
	coroutine.yield()
	spin()
end

local function endless() -- @endless
	while true do
		spin()
		coroutine.yield()
		pcall(yielder)
	end
end

local function failing() -- @failing
	spin()
	error("inside a coroutine")
end

local immortal = coroutine.create(endless)
local function step() -- @step
	spin()
	coroutine.resume(immortal)
end

local generator
local function compare(a, b) -- @compare
	spin(50)
	generator()
	return a < b
end

local finish = ready()
while os.clock() < finish do
	local produce = coroutine.wrap(producer)
	for _ = 1, 7 do
		produce()
	end
	local thread = coroutine.create(outer)
	repeat
		coroutine.resume(thread)
	until coroutine.status(thread) == "dead"
	step()
	coroutine.resume(coroutine.create(failing))
	generator = coroutine.wrap(function() -- @forever
		while true do
			producer()
		end
	end)
	table.sort({ 3, 1, 2 }, compare)
end
-- SPDX-License-Identifier: MIT
