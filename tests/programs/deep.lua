-- Recursion 5,000 frames deep; none is left out.
-- stack: main dig@dig{1,5000} (spin)?
-- stack: main odd@odd (even@even odd@odd){0,500} (even@even)? (spin)?
local spin, ready = dofile("harness.lua")

local function dig(depth) -- @dig
	if depth > 1 then
		return 1 + dig(depth - 1)
	end
	return 1 + spin(1000000)
end

local even

local function odd(depth) -- @odd
	if depth > 1 then
		return 1 + even(depth - 1)
	end
	return 1 + spin(100000)
end

function even(depth) -- @even
	if depth > 1 then
		return 1 + odd(depth - 1)
	end
	return 1 + spin(100000)
end

local finish = ready()
while os.clock() < finish do
	dig(5000)
	odd(1000)
end
-- SPDX-License-Identifier: MIT
