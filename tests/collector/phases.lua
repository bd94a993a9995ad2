-- SPDX-License-Identifier: MIT
-- Knows how long its collector worked on what, by CPU time.
--
--	luajit phases.lua on|off SECONDS GC_STATE
--
-- It alone steps the collector, and reads after each step where the collector stands:
-- GC_STATE is the offset of gc.state in global_State, that of L.glref follows from the
-- width of references. After SECONDS of CPU time it prints a line for each state, with
-- its number and its seconds, then the cycles, and all its CPU time. A step goes on from
-- marking (GCSpropagate) to its end (GCSatomic), so the time of the former has both.
collectgarbage("stop")

local ffi = require("ffi")

ffi.cdef([[
	typedef struct { int64_t s, ns; } timespec;
	int clock_gettime(int clock, timespec *ret);
]])

local mode, seconds, gc_state = arg[1], tonumber(arg[2]), tonumber(arg[3])
if mode == "off" then
	jit.off()
end

local PAUSE, FINALIZE = 0, 5 -- GCSpause, GCSfinalize
local now_is = ffi.new("timespec[1]")

local function now()
	ffi.C.clock_gettime(2, now_is) -- CLOCK_PROCESS_CPUTIME_ID
	return tonumber(now_is[0].s) + tonumber(now_is[0].ns) / 1e9
end

local thread = tonumber(tostring(coroutine.create(now)):match("0x%x+"))
local g = ffi.abi("gc64") and ffi.cast("uint64_t *", thread + 16)[0] or ffi.cast("uint32_t *", thread + 8)[0]
local state = ffi.cast("uint8_t *", g) + gc_state

local function spin()
	local sum = 0
	for i = 1, 3000 do
		sum = sum + i % 7
	end
	return sum
end

local proxy = newproxy(true)
getmetatable(proxy).__gc = spin

-- What lives is marked, weak tables are cleared when all is marked, what dies is swept,
-- and what has a finalizer is finalized.
local live, weak = {}, setmetatable({}, { __mode = "k" })
for i = 1, 40000 do
	live[i] = { i }
	weak[live[i]] = i
end

local dead = {}

local function make_garbage(round)
	for i = 1, 40000 do
		dead[i] = { i, { i } }
	end
	for i = 1, 40000 do
		dead[i] = "dead " .. round .. " " .. i
	end
	for i = 1, 40000 do
		dead[i] = false
	end
	for _ = 1, 100 do
		newproxy(proxy)
	end
end

local spent = { [0] = 0, 0, 0, 0, 0, 0 }
local cycles = 0

-- To the end of the state that the collector is in.
local function work()
	local before, began = state[0], now()
	repeat
		collectgarbage("step", 0)
	until state[0] ~= before
	spent[before] = spent[before] + now() - began
end

local function cycle(round)
	collectgarbage("stop")
	make_garbage(round)
	repeat
		work()
	until state[0] == PAUSE
	cycles = cycles + 1
end

local round = 0
while now() < seconds do
	round = round + 1
	cycle(round)
end
for number = PAUSE, FINALIZE do
	io.write(number, " ", spent[number], "\n")
end
io.write("cycles ", cycles, "\nall ", now(), "\n")
