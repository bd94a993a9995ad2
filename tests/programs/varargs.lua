-- Vararg functions have two frames in memory and one in a stack.
-- stack: main first@first (second@second (third@third)?)? spin
-- stack: main first@first [select]
-- stack: main count@count (spin | [select]!)
-- stack: main collect@collect (spin | [unpack]! | [table.concat]!)
-- stack: main many@many spin
-- stack: main [unpack]!
-- stack: main [pcall] @third spin
local spin, ready = dofile("harness.lua")

local function third(...) -- @third
	spin()
	return ...
end

local function second(a, ...) -- @second
	spin()
	local b = third(a, ...)
	return b, ...
end

local function first(...) -- @first
	spin()
	local n = select("#", ...)
	local a, b = second(n, ...)
	return a, b
end

local function count(...) -- @count
	local n = 0
	for i = 1, select("#", ...) do
		n = n + select(i, ...)
	end
	spin()
	return n
end

local function collect(...) -- @collect
	local all = { ... }
	spin()
	local text = table.concat(all, ",")
	return text, unpack(all)
end

local function many(...) -- @many
	local a, b, c, d = ...
	spin()
	return d, c, b, a
end

local hundred = {}
for i = 1, 100 do
	hundred[i] = i
end

local finish = ready()
while os.clock() < finish do
	first(1, 2, 3)
	first()
	count(1, 2, 3, 4, 5, 6, 7, 8)
	collect(1, 2, 3)
	many(1, 2, 3, 4, 5, 6)
	pcall(third, 1, 2)
	many(unpack(hundred))
end
-- SPDX-License-Identifier: MIT
