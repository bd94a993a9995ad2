-- Calls into C through the FFI, and objects of its types.
local ffi = require("ffi")
ffi.cdef [[
double fabs(double x);
int abs(int x);
]]
local C = ffi.C
local numbers = ffi.new("int[4]")

return function()
	@ local x = C.abs(-3)
	@ x = C.fabs(-3)
	@ x = numbers[1]
	@ numbers[1] = 7
	@ x = ffi.new("int[2]")
	@ x = tonumber(x[0])
	@ x = ffi.cast("int64_t", 5)
	@ x = x + 1
end
-- SPDX-License-Identifier: MIT
