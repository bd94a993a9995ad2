-- SPDX-License-Identifier: MIT
-- locked_memory.lua FILE: for a line, it has the kernel hold the lock of its memory until FILE can be read. A
-- child reads a page of it in this process, for which it takes the lock to read. This process maps memory,
-- for which it awaits the lock to write. Whoever asks for the lock from then on waits behind it.
local ffi = require("ffi")
local file = ...

ffi.cdef [[
	int open(const char *, int);
	void *mmap(void *, size_t, int, int, int, long);
	int munmap(void *, size_t);
	long pread(int, void *, size_t, long);
	int fork(void);
	int getpid(void);
	int prctl(int, long);
	void _exit(int);
]]

local O_RDONLY, PROT_READ, MAP_PRIVATE, MAP_ANONYMOUS = 0, 1, 2, 0x20
local PR_SET_PDEATHSIG, SIGKILL = 1, 9
local PAGE = 4096

local pages = ffi.C.mmap(nil, PAGE, PROT_READ, MAP_PRIVATE, ffi.C.open(file, O_RDONLY), 0)
local memory = ffi.C.open("/proc/" .. ffi.C.getpid() .. "/mem", O_RDONLY)

print("ready")
io.flush()
io.read()
if ffi.C.fork() == 0 then
	ffi.C.prctl(PR_SET_PDEATHSIG, SIGKILL)
	ffi.C.pread(memory, ffi.new("char[1]"), 1, tonumber(ffi.cast("intptr_t", pages)))
	ffi.C._exit(0)
end
while true do
	ffi.C.munmap(ffi.C.mmap(nil, PAGE, PROT_READ, MAP_PRIVATE + MAP_ANONYMOUS, -1, 0), PAGE)
end
