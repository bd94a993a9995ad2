-- SPDX-License-Identifier: MIT
-- Says where it is, by its own debug library, and stays there.
local ffi = require("ffi")
ffi.cdef("int usleep(unsigned int us);")

local function park() print(debug.traceback("ready")) io.stdout:flush() while true do ffi.C.usleep(900000) end end

local function third(n)
	if n > 0 then return (third(n - 1)) end
	return (park())
end

local function sorted()
	table.sort({ 2, 1 }, function() third(2) return false end)
end

local co = coroutine.wrap(function() sorted() return 1 end)
jit.off()
print(pcall(function() return (co()) end))
