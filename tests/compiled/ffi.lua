-- C functions called from compiled code: calls without a result, in a trace that is stitched on.
--
--	luajit ffi.lua SECONDS
local ffi = require("ffi")

ffi.cdef [[
	unsigned long strlen(const char *string);
	int memcmp(const char *a, const char *b, unsigned long length);
]]

local C = ffi.C
local SIZE = 4000000
local text, same = ("x"):rep(SIZE), ("x"):rep(SIZE - 1) .. "x"

local function measure()
	C.strlen(text)
end

local function compare()
	C.memcmp(text, same, SIZE)
end

local function work()
	measure()
	compare()
end

io.write("ready\n")
io.flush()
local finish = os.clock() + tonumber(arg[1])
while os.clock() < finish do
	work()
end
-- SPDX-License-Identifier: MIT
