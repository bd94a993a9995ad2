-- What a program does when it does not compute, in turns, each in a function of
-- its own:
--
--	luajit waits.lua SECONDS WAIT...
--
-- In the end it says of each where its function is, how long it was in there, by
-- its own watch, and how long it waited for a CPU in there, by the kernel's; and how
-- many of its system calls were interrupted.
local ffi = require("ffi")
jit.off() -- what compiled code has called is told to be near its place, not there

ffi.cdef [[
	typedef struct { long sec, nsec; } timespec;
	typedef struct { uint16_t family, port; uint32_t address; char zero[8]; } address;
	typedef struct { int fd; short events, revents; } pollfd;
	typedef union { char bytes[48]; long align; } pthread_mutex;
	int clock_gettime(int clock, timespec *now);
	int usleep(unsigned int us);
	int socket(int family, int type, int protocol);
	int connect(int fd, const address *to, unsigned int length);
	int bind(int fd, const address *at, unsigned int length);
	int getsockname(int fd, address *at, unsigned int *length);
	int listen(int fd, int backlog);
	int close(int fd);
	int mkfifo(const char *path, unsigned int mode);
	int open(const char *path, int flags);
	long read(int fd, void *buffer, size_t length);
	int setsockopt(int fd, int level, int option, const void *value, unsigned int length);
	long recv(int fd, void *buffer, size_t length, int flags);
	int poll(pollfd *fds, unsigned long count, int timeout_ms);
	int epoll_create1(int flags);
	int epoll_wait(int fd, void *events, int count, int timeout_ms);
	int pthread_mutex_lock(pthread_mutex *mutex);
	int pthread_mutex_timedlock(pthread_mutex *mutex, const timespec *until);
	char *strerror(int error);
]]

local EINTR, AF_INET, SOCK_STREAM, SOCK_DGRAM, SOCK_NONBLOCK, SOL_SOCKET = 4, 2, 1, 2, 2048, 1
local SO_RCVTIMEO, SO_SNDTIMEO, O_RDWR = 20, 21, 2
local CLOCK_REALTIME, CLOCK_MONOTONIC = 0, 1
local WAIT_MS = 50

local stamp = ffi.new("timespec")
local function seconds()
	ffi.C.clock_gettime(CLOCK_MONOTONIC, stamp)
	return tonumber(stamp.sec) + tonumber(stamp.nsec) * 1e-9
end

local interrupted = 0
local function check(result)
	if result < 0 and ffi.errno() == EINTR then
		interrupted = interrupted + 1
	end
end

local socket = ffi.C.socket(AF_INET, SOCK_DGRAM, 0)
local server = ffi.new("address", { AF_INET, 53 * 256, 0x0100007f }) -- 127.0.0.1:53
ffi.C.setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, ffi.new("timespec", { 0, WAIT_MS * 1000 }), 16)
ffi.C.connect(socket, server, ffi.sizeof(server))
local byte = ffi.new("char[1]")

-- A server that answers nobody: its queue is full.
local full = ffi.C.socket(AF_INET, SOCK_STREAM, 0)
local full_at = ffi.new("address", { AF_INET, 0, 0x0100007f })
ffi.C.bind(full, full_at, ffi.sizeof(full_at))
ffi.C.listen(full, 0)
ffi.C.getsockname(full, full_at, ffi.new("unsigned int[1]", ffi.sizeof(full_at)))
for _ = 1, 4 do
	ffi.C.connect(ffi.C.socket(AF_INET, SOCK_STREAM + SOCK_NONBLOCK, 0), full_at, ffi.sizeof(full_at))
end

local fifo_path = os.tmpname()
os.remove(fifo_path)
ffi.C.mkfifo(fifo_path, 384)
local fifo = ffi.C.open(fifo_path, O_RDWR)

local mutex = ffi.new("pthread_mutex")
ffi.C.pthread_mutex_lock(mutex)

local epoll, events = ffi.C.epoll_create1(0), ffi.new("char[16]")
local polled = ffi.new("pollfd[2]", { { socket, 1 }, { epoll, 1 } })

local waits = {}

function waits.compute()
	local stop, sum = seconds() + WAIT_MS / 1000, 0
	while seconds() < stop do
		for i = 1, 1000 do
			sum = sum + i % 7
		end
	end
	return sum
end

function waits.moment()
	local sum = 0
	for i = 1, 50000 do
		sum = sum + i % 7
	end
	return sum
end

function waits.sleep()
	check(ffi.C.usleep(WAIT_MS * 1000))
end

function waits.resolve() -- as a blocking resolver waits for its answer
	check(tonumber(ffi.C.recv(socket, byte, 1, 0)))
end

function waits.connect()
	local client = ffi.C.socket(AF_INET, SOCK_STREAM, 0)
	ffi.C.setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, ffi.new("timespec", { 0, WAIT_MS * 1000 }), 16)
	check(ffi.C.connect(client, full_at, ffi.sizeof(full_at)))
	ffi.C.close(client)
end

function waits.read_fifo()
	os.execute("(sleep 0.05; echo >" .. fifo_path .. ") &")
	check(tonumber(ffi.C.read(fifo, byte, 1)))
end

function waits.resolve_by_poll() -- and as the C library does
	check(ffi.C.poll(polled, 1, WAIT_MS))
end

function waits.lock()
	ffi.C.clock_gettime(CLOCK_REALTIME, stamp)
	local until_ns = stamp.nsec + WAIT_MS * 1000000
	stamp.sec, stamp.nsec = stamp.sec + until_ns / 1000000000, until_ns % 1000000000
	ffi.C.pthread_mutex_timedlock(mutex, stamp)
end

function waits.execute()
	os.execute("sleep 0.05")
end

function waits.read_pipe()
	local pipe = io.popen("sleep 0.05; echo done")
	pipe:read()
	pipe:close()
end

function waits.events()
	check(ffi.C.epoll_wait(epoll, events, 1, WAIT_MS))
end

function waits.poll_several()
	check(ffi.C.poll(polled, 2, WAIT_MS))
end

local function queued_seconds()
	local schedstat = assert(io.open("/proc/thread-self/schedstat"))
	local _, waited_ns = schedstat:read("*n", "*n")
	schedstat:close()
	return waited_ns * 1e-9
end

local turns, spent, queued = { unpack(arg, 2) }, {}, {}
local started = seconds()
repeat
	for _, name in ipairs(turns) do
		local queued_before, begin = queued_seconds(), seconds()
		waits[name]()
		spent[name] = (spent[name] or 0) + seconds() - begin
		queued[name] = (queued[name] or 0) + queued_seconds() - queued_before
	end
until seconds() - started > tonumber(arg[1])
for name, time in pairs(spent) do
	io.write(name, " ", debug.getinfo(waits[name]).linedefined, " ", time, " ", queued[name], "\n")
end
os.remove(fifo_path)
io.write("interrupted ", interrupted, "\n")
-- SPDX-License-Identifier: MIT
