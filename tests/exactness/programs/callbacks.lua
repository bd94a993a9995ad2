-- A Lua function that C calls back.
local ffi = require("ffi")
ffi.cdef [[
void qsort(void *base, size_t count, size_t size, int (*compare)(const int *, const int *));
]]
local C = ffi.C
local numbers = ffi.new("int[4]")

local function compare(a, b)
	@ local x = a[0]
	@ local y = b[0]
	@ return x - y
end

local callback = ffi.cast("int (*)(const int *, const int *)", compare)

local function sorted()
	@ numbers[0] = 3
	@ numbers[1] = 1
	@ numbers[2] = 2
	@ C.qsort(numbers, 3, 4, callback)
	@ return
end
jit.off(sorted)

return function()
	@ sorted()
end
-- SPDX-License-Identifier: MIT
