-- foo calls heavy twice and bar calls it once: foo has two thirds of the time.
-- stack: main (foo@foo | bar@bar) heavy@heavy!
local _, ready = dofile("harness.lua")

local function heavy(n) -- @heavy
	local sum = 0
	for i = 1, n do
		sum = sum + i
	end
	return sum
end

local function foo() -- @foo
	local a = heavy(5e6)
	local b = heavy(5e6)
	return a + b
end

local function bar() -- @bar
	local a = heavy(5e6)
	return a
end

local finish = ready()
while os.clock() < finish do
	local _ = foo() + bar()
end
-- SPDX-License-Identifier: MIT
