-- Three functions in turn, in parts that the command line gives: for comparisons. Each call takes
-- another time, so that samples at ticks of the machine's clock meet any part of the work: if all took
-- the same, they might for a whole recording meet the same parts.
local rounds, seconds = {}, tonumber(arg[4])
for i = 1, 3 do
	rounds[i] = tonumber(arg[i]) * 10000
end

local function spin(mean)
	local sum = 0
	for i = 1, math.random(2 * mean) do
		sum = sum + i % 7
	end
	return sum
end

-- No tail calls: each keeps its frame.
local function parse()
	local result = spin(rounds[1])
	return result
end

local function render()
	local result = spin(rounds[2])
	return result
end

local function log()
	local result = spin(rounds[3])
	return result
end

local finish = os.clock() + seconds
repeat
	-- The kernel prefers the ends of system calls to let ljspy run: make few.
	for _ = 1, 100 do
		parse()
		render()
		log()
	end
until os.clock() >= finish
-- SPDX-License-Identifier: MIT
