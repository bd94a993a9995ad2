-- SPDX-License-Identifier: MIT
-- A Lua function that is called back by C functions with signed return addresses (signed.c).
local ffi = require("ffi")
local C = ffi.load("/signed.so")

for _, way in ipairs({ "standard", "leaves", "combined" }) do
	ffi.cdef(("int %s_calls(int (*)(int), int); unsigned int %s_works(unsigned int);"):format(way, way))
end

local function twice(n)
	@ local doubled = n + n
	@ return doubled
end

local callback = ffi.cast("int (*)(int)", twice)

local function called()
	@ C.standard_calls(callback, 1)
	@ C.leaves_calls(callback, 2)
	@ C.combined_calls(callback, 3)
	@ C.standard_works(9)
	@ C.leaves_works(9)
	@ C.combined_works(9)
	@ return
end
jit.off(called)

return function()
	@ called()
end
