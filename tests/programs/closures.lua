-- Functions that share a line, a prototype or a name are told apart by how they
-- are called and where they are defined.
-- stack: main (one@counter | two@counter) spin
-- stack: main maker@maker
-- stack: main left@twins spin
-- stack: main right@twins spin
-- stack: main same@first_same (same@second_same)? spin
-- stack: main recurse@recurse{1,10} spin
-- stack: main curried@curried
-- stack: main (@curried_inner | @curried_innermost) spin
local spin, ready = dofile("harness.lua")

local function maker() -- @maker
	local count = 0
	return function() -- @counter
		count = count + 1
		spin()
		return count
	end
end

local one, two = maker(), maker()
local left, right = function() return 1 + spin() end, function() return 2 + spin() end -- @twins

local same = function() -- @second_same
	return 1 + spin()
end
local inner_same = same
do
	local outer_same = function() -- @first_same
		local same = inner_same
		spin()
		return 1 + same()
	end
	same = outer_same
end

local function recurse(depth) -- @recurse
	spin()
	if depth > 1 then
		recurse(depth - 1)
	end
	spin()
end

local function curried() -- @curried
	return function() -- @curried_inner
		spin()
		return function() -- @curried_innermost
			return 1 + spin()
		end
	end
end

local finish = ready()
while os.clock() < finish do
	one()
	two()
	maker()
	left()
	right()
	same()
	recurse(10)
	curried()()()
end
-- SPDX-License-Identifier: MIT
