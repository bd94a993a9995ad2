-- SPDX-License-Identifier: MIT
-- Collects all garbage now and then, and prints when: steps.lua SECONDS
-- A line for each collection: "step BEGIN END", in seconds of CLOCK_REALTIME.
local ffi = require("ffi")

ffi.cdef([[
	typedef struct { int64_t s, ns; } timespec;
	int clock_gettime(int clock, timespec *ret);
]])

local now_is = ffi.new("timespec[1]")

local function now()
	ffi.C.clock_gettime(0, now_is)
	return string.format("%d.%09d", tonumber(now_is[0].s), tonumber(now_is[0].ns))
end

collectgarbage("stop") -- no other steps but ours
local seconds, alive, steps = tonumber(arg[1]), {}, {}
for i = 1, 600000 do
	alive[i] = { i }
end

local function churn()
	local made
	for i = 1, 20000 do
		made = { i, i }
	end
	return made
end

local function collect()
	local begin = now()
	collectgarbage()
	collectgarbage("stop")
	steps[#steps + 1] = "step " .. begin .. " " .. now()
end

local finish = os.clock() + seconds
while os.clock() < finish do
	for _ = 1, 5 do
		churn()
	end
	collect()
end
print(table.concat(steps, "\n"))
