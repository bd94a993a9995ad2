-- SPDX-License-Identifier: MIT
-- Works, while memory that its objects lead to is registered with userfaultfd(2), and nobody
-- delivers its pages: whoever reads them waits. With "name" it is the name of a function's file,
-- with "value" a string in a table.
local ffi = require("ffi")
local kind = ...

collectgarbage("stop")
ffi.cdef [[
	void *mmap(void *, size_t, int, int, int, long);
	long syscall(long, ...);
	int ioctl(int, unsigned long, ...);
	struct uffdio_api { uint64_t api, features, ioctls; };
	struct uffdio_register { uint64_t start, length, mode, ioctls; };
]]

local LENGTH = 1048576
local CREATE = ffi.arch == "arm64" and 282 or 323
local UFFDIO_API, UFFDIO_REGISTER, MISSING = 0xc018aa3fULL, 0xc020aa00ULL, 1

local pages = ffi.C.mmap(nil, LENGTH, 3, 0x22, -1, 0)
local fd = tonumber(ffi.C.syscall(CREATE, ffi.cast("int", 0x80000)))
local api = ffi.new("struct uffdio_api", 0xaa)
local range = ffi.new("struct uffdio_register", ffi.cast("uint64_t", pages), LENGTH, MISSING)
if fd < 0 or ffi.C.ioctl(fd, UFFDIO_API, api) ~= 0 or ffi.C.ioctl(fd, UFFDIO_REGISTER, range) ~= 0 then
	print("no userfaultfd: " .. ffi.errno())
	os.exit()
end

-- Of LuaJIT 2.1 with GC64: GCfuncL.pc, GCproto.chunkname before the bytecode, GCtab.array, and LJ_TSTR.
local function words(object)
	return ffi.cast("uint64_t *", tonumber(string.format("%p", object)))
end
local function work(strings)
	local sum = 0
	for i = 1, 1e5 do sum = sum + i % 7 end
	return sum + #strings
end
local strings = { "a" }
if kind == "name" then
	ffi.cast("uint64_t *", words(work)[4] - 40)[0] = ffi.cast("uint64_t", pages)
else
	ffi.cast("uint64_t *", words(strings)[2])[1] = bit.lshift(-5LL, 47) + ffi.cast("uint64_t", pages)
end

print("ready")
io.flush()
while true do work(strings) end
