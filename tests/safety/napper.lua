-- napper.lua SECONDS: short bursts of work between naps of a few milliseconds, in one system call after
-- the other, each of which is to last its time and to end as it does when nobody looks. Prints "ready",
-- and begins after a line of input; then prints for each call its name, how many naps there were, how
-- many were interrupted, how many ended otherwise than they should, how many too early, and the
-- median of how much too late they ended, in microseconds.
--
-- The kernel counts the limits of sockets in its ticks, begun ones as well, and takes them to be
-- over up to a tick early if the thread is woken then. Those naps are timed by the clock that goes
-- by the same ticks, which a machine that shares its CPUs may hold up, and may lack one of them.

local ffi = require("ffi")

ffi.cdef [[
struct timespec { long sec, nsec; };
struct epoll_event { uint32_t events; uint64_t data; } __attribute__((packed));
struct pollfd { int fd; short events, revents; };
struct sembuf { unsigned short num; short op, flags; };
int clock_gettime(int, struct timespec *);
int clock_getres(int, struct timespec *);
int socket(int, int, int);
int socketpair(int, int, int, int *);
int setsockopt(int, int, int, const void *, unsigned int);
int epoll_create1(int);
int epoll_ctl(int, int, int, struct epoll_event *);
int epoll_wait(int, struct epoll_event *, int, int);
int epoll_pwait(int, struct epoll_event *, int, int, const uint64_t *);
long recv(int, void *, size_t, int);
long read(int, void *, size_t);
int sigtimedwait(const uint64_t *, void *, const struct timespec *);
int semget(int, int, int);
int semctl(int, int, int);
int semtimedop(int, struct sembuf *, size_t, const struct timespec *);
int nanosleep(const struct timespec *, struct timespec *);
int poll(struct pollfd *, unsigned long, int);
long syscall(long, ...);
]]

local C = ffi.C
local EINTR, EAGAIN, ETIMEDOUT = 4, 11, 110
local MONOTONIC, MONOTONIC_COARSE = 1, 6
local seconds, nap_us = tonumber(arg[1]), 1000
local time = ffi.new("struct timespec", 0, nap_us * 1000)

local function now_us(clock)
	local now = ffi.new("struct timespec")
	C.clock_gettime(clock, now)
	return tonumber(now.sec) * 1e6 + tonumber(now.nsec) / 1e3
end

local resolution = ffi.new("struct timespec")
C.clock_getres(MONOTONIC_COARSE, resolution)
local tick_us = tonumber(resolution.nsec) / 1e3
local ticks = { clock = MONOTONIC_COARSE, us = 3 * tick_us, least_us = 2 * tick_us - 1 }
local exact = { clock = MONOTONIC, us = nap_us, least_us = nap_us }

-- Each returns a function that naps, what that returns, errno if that is -1, and how its time is told.
local calls = {}

function calls.epoll_wait()
	local epoll, event = C.epoll_create1(0), ffi.new("struct epoll_event")
	return function() return C.epoll_wait(epoll, event, 1, 1) end, 0
end

function calls.epoll_pwait()
	local epoll, event, mask = C.epoll_create1(0), ffi.new("struct epoll_event"), ffi.new("uint64_t[16]")
	return function() return C.epoll_pwait(epoll, event, 1, 1, mask) end, 0
end

local function set_timeout(socket)
	local SOL_SOCKET, SO_RCVTIMEO = 1, 20
	local timeout = ffi.new("struct timespec", 0, ticks.us)	-- a timeval
	assert(C.setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, timeout, ffi.sizeof(timeout)) == 0)
end

function calls.recv()
	local AF_INET, SOCK_DGRAM = 2, 2
	local socket, byte = C.socket(AF_INET, SOCK_DGRAM, 0), ffi.new("char[1]")
	set_timeout(socket)
	return function() return C.recv(socket, byte, 1, 0) end, -1, EAGAIN, ticks
end

function calls.read()
	local AF_UNIX, SOCK_STREAM = 1, 1
	local pair, byte = ffi.new("int[2]"), ffi.new("char[1]")
	assert(C.socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0)
	set_timeout(pair[0])
	return function() return C.read(pair[0], byte, 1) end, -1, EAGAIN, ticks
end

function calls.sigtimedwait()
	local SIGUSR2 = 12
	local set = ffi.new("uint64_t[16]")
	set[0] = bit.lshift(1ULL, SIGUSR2 - 1)
	return function() return C.sigtimedwait(set, nil, time) end, -1, EAGAIN
end

local semaphore
function calls.semtimedop()
	semaphore = C.semget(0, 1, 384)
	assert(semaphore >= 0)
	local down = ffi.new("struct sembuf", 0, -1, 0)
	return function() return C.semtimedop(semaphore, down, 1, time) end, -1, EAGAIN
end

function calls.nanosleep()
	return function() return C.nanosleep(time, nil) end, 0
end

function calls.poll()
	return function() return C.poll(nil, 0, 1) end, 0
end

function calls.futex()
	local SYS_futex, FUTEX_WAIT = 202, 0
	local word = ffi.new("int[1]")
	return function()
		return tonumber(C.syscall(SYS_futex, word, ffi.cast("long", FUTEX_WAIT), ffi.cast("long", 0), time))
	end, -1, ETIMEDOUT
end

local kinds = {}
for name, prepare in pairs(calls) do
	local nap, result, errno, time = prepare()
	kinds[#kinds + 1] = {
		name = name, nap = nap, result = result, errno = errno, time = time or exact,
		naps = 0, interrupted = 0, wrong = 0, early = 0, late = {},
	}
end

local function nap_once(kind)
	local begin = now_us(kind.time.clock)
	local result = kind.nap()
	local errno = ffi.errno()
	local slept = now_us(kind.time.clock) - begin
	kind.naps = kind.naps + 1
	if result == -1 and errno == EINTR then
		kind.interrupted = kind.interrupted + 1
	elseif result ~= kind.result or (kind.errno and errno ~= kind.errno) then
		kind.wrong = kind.wrong + 1
	elseif slept < kind.time.least_us then
		kind.early = kind.early + 1
	else
		kind.late[#kind.late + 1] = slept - kind.time.us
	end
end

io.write("ready\n") io.flush()
io.read() -- until it is profiled
local finish = now_us(MONOTONIC) + seconds * 1e6
while now_us(MONOTONIC) < finish do
	for _, kind in ipairs(kinds) do
		local sum = 0
		for i = 1, math.random(200000) do sum = sum + i % 7 end
		nap_once(kind)
	end
end
C.semctl(semaphore, 0, 0)
for _, kind in ipairs(kinds) do
	table.sort(kind.late)
	local median = kind.late[math.ceil(#kind.late / 2)] or 0
	print(kind.name, kind.naps, kind.interrupted, kind.wrong, kind.early, math.floor(median))
end
-- SPDX-License-Identifier: MIT
