-- gaps.lua FILE [calm]: spins, and notes in FILE for how long it did not run although
-- no other process had its CPU: the longest time, how many there were and the last of
-- them, and the longest gap of any kind. An ignored signal comes every few milliseconds
-- of CPU time: being traced, it goes on only when its tracer says so. None if calm.
local ffi = require("ffi")
ffi.cdef([[
	struct timespec { long sec, nsec; };
	struct itimerval { long interval_sec, interval_usec, value_sec, value_usec; };
	int clock_gettime(int clock, struct timespec *ret_now);
	int setitimer(int which, const struct itimerval *new, void *old);
	void *signal(int number, void *handler);
	int open(const char *path, int flags);
	long pread(int fd, void *bytes, unsigned long size, long offset);
	void *mmap(void *address, unsigned long size, int protection, int flags, int fd, long offset);
	struct notes { uint64_t longest_held, count, longest_gap; uint32_t held_us[1000]; };
]])
local C = ffi.C
local CLOCK_MONOTONIC, ITIMER_PROF, SIGPROF, O_RDWR = 1, 2, 27, 2
local PROT_READ_WRITE, MAP_SHARED = 3, 1
local NOTED_NS, NOTES_MAX = 500 * 1000, 1000

local file = C.open(arg[1], O_RDWR)
local notes = ffi.cast("struct notes *", C.mmap(nil, 4096, PROT_READ_WRITE, MAP_SHARED, file, 0))
local schedstat = C.open("/proc/thread-self/schedstat", 0)
local text, time = ffi.new("char[128]"), ffi.new("struct timespec[1]")

local function waited_ns()
	local length = C.pread(schedstat, text, 127, 0)
	return tonumber(ffi.string(text, length):match("^%d+ (%d+)"))
end

local function now_ns()
	C.clock_gettime(CLOCK_MONOTONIC, time)
	return tonumber(time[0].sec) * 1e9 + tonumber(time[0].nsec)
end

local function note(gap, waited)
	local held = gap - waited
	if gap > notes.longest_gap then notes.longest_gap = gap end
	if held > NOTED_NS then
		notes.held_us[tonumber(notes.count) % NOTES_MAX] = held / 1000
		notes.count = notes.count + 1
	end
	if held > 0 and held > notes.longest_held then notes.longest_held = held end
end

if arg[2] ~= "calm" then
	C.signal(SIGPROF, ffi.cast("void *", 1))
	C.setitimer(ITIMER_PROF, ffi.new("struct itimerval", { 0, 5000, 0, 5000 }), nil)
end
io.write("ready\n")
io.flush()
local last, waited = now_ns(), waited_ns()
while true do
	local now = now_ns()
	if now - last > NOTED_NS then
		local so_far = waited_ns()
		note(now - last, so_far - waited)
		waited = so_far
		now = now_ns()
	end
	last = now
end
-- SPDX-License-Identifier: MIT
