-- Three functions in turn, in parts that the command line gives: for comparisons.
local rounds, seconds = {}, tonumber(arg[4])
for i = 1, 3 do
	rounds[i] = tonumber(arg[i]) * 10000
end

local function spin(n)
	local sum = 0
	for i = 1, n do
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
while os.clock() < finish do
	parse()
	render()
	log()
end
-- SPDX-License-Identifier: MIT
