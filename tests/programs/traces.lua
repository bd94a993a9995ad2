-- What keeps the compiler busy: inlined calls, recursion up and down, side
-- exits, polymorphic calls, calls that stitch traces together, traces that are
-- thrown away.
-- stack: main sums@sums! (scale@scale! (shift@shift!)?)?
-- stack: main fib@fib{1,20}!
-- stack: main branches@branches!
-- stack: main dispatch@dispatch! (operation@double! | operation@halve! | operation@negate!)?
-- stack: main stitched@stitched! ([os.time]! | [string.rep]!)?
-- stack: main nested@nested! (each@each! (visitor@visitor! (shift@shift!)?)?)?
-- stack: main [jit.flush]!
local _, ready = dofile("harness.lua")

local function shift(x) -- @shift
	return x * 0.5 + 1
end

local function scale(x) -- @scale
	local y = shift(x)
	return y % 17
end

local function sums() -- @sums
	local sum = 0
	for i = 1, 2000 do
		sum = sum + scale(i)
	end
	return sum
end

local function fib(n) -- @fib
	if n < 2 then
		return n
	end
	return fib(n - 1) + fib(n - 2)
end

local function branches(seed) -- @branches
	local a, b, c = 0, 0, 0
	for i = 1, 2000 do
		seed = seed * 16807 % 2147483647
		if seed % 2 == 0 then
			a = a + 1
		elseif seed % 3 == 0 then
			b = b + i
		elseif seed % 5 == 0 then
			c = c - i
		else
			a = a - b + c
		end
	end
	return seed
end

local function double(x) -- @double
	return x * 2
end

local function halve(x) -- @halve
	return x / 2
end

local function negate(x) -- @negate
	return -x
end

local operations = { double, halve, negate }

local function dispatch() -- @dispatch
	local sum = 1
	for i = 1, 2000 do
		local operation = operations[i % 3 + 1]
		sum = operation(sum) % 1000
	end
	return sum
end

local function stitched() -- @stitched
	local sum = 0
	for i = 1, 50 do
		sum = sum + os.time() % 7 + #string.rep("x", i)
	end
	return sum
end

local function visitor(x) -- @visitor
	local y = shift(x)
	return y + 1
end

local function each(list, visitor) -- @each
	local sum = 0
	for i = 1, #list do
		sum = sum + visitor(list[i])
	end
	return sum
end

local list = {}
for i = 1, 10 do
	list[i] = i
end

local function nested() -- @nested
	local sum = 0
	for _ = 1, 100 do
		sum = sum + each(list, visitor)
	end
	return sum
end

local finish, seed, round = ready(), 42, 0
while os.clock() < finish do
	sums()
	fib(15)
	seed = branches(seed)
	dispatch()
	stitched()
	nested()
	round = round + 1
	if round % 500 == 0 then
		jit.flush()
	end
end
-- SPDX-License-Identifier: MIT
