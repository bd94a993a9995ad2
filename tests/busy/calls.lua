-- SPDX-License-Identifier: MIT
-- calls.lua CPU_SECONDS: compiled work with a short system call now and then. In the end it says which part of its CPU
-- time the calls took.
local ffi = require("ffi")
ffi.cdef("int getppid(void);")

local C = ffi.C
local CALLS, WORK = 200, 1500

local function call(count)
	for _ = 1, count do C.getppid() end
end

local function work(turns)
	local sum = 0
	for _ = 1, turns do
		for j = 1, WORK do sum = sum + j % 7 end
		C.getppid()
	end
	return sum
end

call(1e5)
local begin = os.clock()
call(1e6)
local cost = (os.clock() - begin) / 1e6

io.write("ready\n")
io.flush()
begin = os.clock()
local ends, turns = begin + tonumber(arg[1]), 0
while os.clock() < ends do
	work(CALLS)
	turns = turns + CALLS
end
io.write(turns * cost / (os.clock() - begin), "\n")
