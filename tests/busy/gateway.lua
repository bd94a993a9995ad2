-- gateway.lua [PAUSE_MS]: requests of four kinds of work, with a wait in between, as an
-- event loop has it. It keeps the CPU time that each function has used, and
-- the longest time in which it did not get on while it worked. A line of input has it
-- say both of the time since the last one.
local ffi = require("ffi")
ffi.cdef[[
struct timespec { long tv_sec, tv_nsec; };
int clock_gettime(int clock, struct timespec *time);
struct pollfd { int fd; short events, revents; };
int poll(struct pollfd *fds, unsigned long count, int timeout);
]]

local C = ffi.C
local MONOTONIC, THREAD_CPUTIME, POLLIN = 1, 3, 1
local pause_ms = tonumber(arg[1]) or 1
local time = ffi.new("struct timespec")
local input = ffi.new("struct pollfd[1]", {{0, POLLIN, 0}})

local function clock(id)
	C.clock_gettime(id, time)
	return tonumber(time.tv_sec) * 1e9 + tonumber(time.tv_nsec)
end

local longest

-- So that the gaps between two of its turns can be seen.
local function work(turns)
	local sum, last = 0, clock(MONOTONIC)
	for i = 1, turns do
		for j = 1, 2000 do sum = sum + j % 7 end
		local now = clock(MONOTONIC)
		if now - last > longest then longest = now - last end
		last = now
	end
	return sum
end

-- A result that is kept makes a call no tail call: the caller's frame stays.
local function route() local sum = work(2) return sum end
local function verify() local sum = work(20) return sum end
local function render() local sum = work(70) return sum end
local function stamp() local now = os.clock() return now end
local function await() local ready = C.poll(nil, 0, pause_ms) return ready end

-- Each is called by its own name, which is how its frame is named.
local parts = {
	{ name = "route", run = function() local result = route() return result end },
	{ name = "verify", run = function() local result = verify() return result end },
	{ name = "render", run = function() local result = render() return result end },
	{ name = "stamp", run = function() local result = stamp() return result end },
	{ name = "await", run = function() local result = await() return result end },
}

local function reset()
	longest = 0
	for _, part in ipairs(parts) do part.ns = 0 end
end

local function report()
	local words = { ("gap %.0f"):format(longest) }
	for _, part in ipairs(parts) do words[#words + 1] = ("%s %.0f"):format(part.name, part.ns) end
	io.write(table.concat(words, " "), "\n")
	io.flush()
	reset()
end

reset()
io.write("ready\n")
io.flush()
while true do
	for _, part in ipairs(parts) do
		local begin = clock(THREAD_CPUTIME)
		part.run()
		part.ns = part.ns + clock(THREAD_CPUTIME) - begin
	end
	if C.poll(input, 1, 0) == 1 and io.read("*l") then report() end
end
-- SPDX-License-Identifier: MIT
