-- Runs for a tenth of a tick of the kernel, soon after it, and never on one: by the
-- clock that only goes on with the tick. So for 80 ticks, then it sleeps for 1.2 seconds.
local ffi = require("ffi")
ffi.cdef([[
	struct timespec { long sec, nsec; };
	int clock_gettime(int clock, struct timespec *ret_time);
	int clock_getres(int clock, struct timespec *ret_time);
	int clock_nanosleep(int clock, int flags, const struct timespec *time, struct timespec *ret_left);
	int prctl(int option, unsigned long argument);
]])
local C = ffi.C
local MONOTONIC, MONOTONIC_COARSE, TIMER_ABSTIME, PR_SET_TIMERSLACK = 1, 6, 1, 29
local time = ffi.new("struct timespec")

local function ns()
	return tonumber(time.sec) * 1e9 + tonumber(time.nsec)
end

local function clock(id)
	C.clock_gettime(id, time)
	return ns()
end

local function sleep_until(moment)
	time.sec, time.nsec = math.floor(moment / 1e9), moment % 1e9
	C.clock_nanosleep(MONOTONIC, TIMER_ABSTIME, time, nil)
end

local function heavy(moment)
	local turns = 0
	while clock(MONOTONIC) < moment do turns = turns + 1 end
	return turns
end

C.prctl(PR_SET_TIMERSLACK, 1)
C.clock_getres(MONOTONIC_COARSE, time)
local tick = ns()
io.write("ready\n")
io.flush()
for i = 1, math.huge do
	if i % 80 == 0 then sleep_until(clock(MONOTONIC) + 1.2e9) end
	local begin = clock(MONOTONIC_COARSE) + 1.05 * tick
	sleep_until(begin)
	-- One that has to wait for its CPU may come too close to the next tick.
	if clock(MONOTONIC) < begin + 0.3 * tick then heavy(begin + 0.1 * tick) end
end
-- SPDX-License-Identifier: MIT
