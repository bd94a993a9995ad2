-- Plain calls; a function is called what its caller calls it.
-- stack: main by_local@foo inner@heavy spin
-- stack: main by_global@foo inner@heavy spin
-- stack: main field@foo inner@heavy spin
-- stack: main deep@foo inner@heavy spin
-- stack: main outer@outer by_upvalue@foo inner@heavy spin
-- stack: main @immediate spin
-- stack: main argument@taker passed@heavy spin
local spin, ready = dofile("harness.lua")

local function heavy() -- @heavy
	local sum = spin()
	return sum + 1
end

local inner = heavy
local function foo() -- @foo
	local a = inner()
	local b = inner()
	return a + b
end

local by_local, by_upvalue = foo, foo
by_global = foo
local object = { field = foo, inside = { deep = foo } }

local function outer() -- @outer
	return 1 + by_upvalue()
end

local function taker(passed) -- @taker
	return 1 + passed()
end
local argument = taker

local finish = ready()
while os.clock() < finish do
	by_local()
	by_global()
	object.field()
	object.inside.deep()
	outer()
	;(function() -- @immediate
		return 1 + spin()
	end)()
	argument(heavy)
end
-- SPDX-License-Identifier: MIT
