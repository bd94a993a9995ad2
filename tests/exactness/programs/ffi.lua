-- Calls into C through the FFI, and back.
local ffi = require("ffi")
ffi.cdef [[
double fabs(double x);
int abs(int x);
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
	@ local x = C.abs(-3)
	@ x = numbers[1]
	@ numbers[1] = 7
	@ x = ffi.new("int[2]")
	@ x = tonumber(x[0])
	@ sorted()
	@ x = ffi.cast("int64_t", 5)
	@ x = x + 1
end
