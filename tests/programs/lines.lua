-- Lines being executed: in a caller the line of the call, in a leaf any of its own.
-- stack: main outer@outer (inner@inner! | again@inner!)
local _, ready = dofile("harness.lua")

local function inner(n) -- @inner
	local sum = 0
	for i = 1, n do
		sum = sum + i % 7 -- @inner_busy
	end
	return sum
end

local again = inner

local function outer() -- @outer
	local a = inner(2000) -- @first_call
	local b = again(
		2000 -- @second_call
	)
	return a + b
end

local finish = ready()
while os.clock() < finish do
	outer() -- @main_call
end
-- SPDX-License-Identifier: MIT
