-- Calls into C and back. C functions are native frames, below the FFI's own
-- builtin when interpreted; a Lua function that C calls stands on them, and has
-- no name.
-- stack: main roots@roots! ([ffi.metamethod]!)?
-- stack: main sorted@sorted! ([ffi.metamethod]!)? (@compare! (spin | [ffi.metamethod]!)?)?
-- stack: main sorted@sorted ([ffi.metamethod])? @deep (spin | [ffi.metamethod]! | descend@descend{1,3} (spin)?)?
-- stack: main cdata@cdata! ([ffi.metamethod]! | [ffi.new]! | [ffi.copy]! | [ffi.fill]! | [ffi.string]! | [ffi.cast]! | [tonumber])?
-- stack: main objects@objects! ([ffi.metamethod]! | __add@add! | length@length!)? (spin | [ffi.metamethod]!)?
local spin, ready = dofile("harness.lua")
local ffi = require("ffi")

ffi.cdef [[
double sqrt(double x);
double cbrt(double x);
void qsort(void *base, size_t count, size_t size, int (*compare)(const int *, const int *));
typedef struct { double x, y; } point;
]]
local libm = ffi.load("m")

local function roots() -- @roots
	local sum = 0
	for i = 1, 1000 do
		sum = sum + libm.sqrt(i) + libm.cbrt(i)
	end
	return sum
end

local numbers = ffi.new("int[50]")

local function compare(a, b) -- @compare
	spin(30)
	return a[0] < b[0] and -1 or a[0] > b[0] and 1 or 0
end

local function descend(depth) -- @descend
	spin(30)
	if depth > 1 then
		descend(depth - 1)
	end
	spin(30)
end

local function deep(a, b) -- @deep
	descend(3)
	return b[0] - a[0]
end

-- A callback for good each: there is room for few, and none is freed.
local compare_callback = ffi.cast("int (*)(const int *, const int *)", compare)
local deep_callback = ffi.cast("int (*)(const int *, const int *)", deep)

-- A function which calls back must not be compiled.
local function sorted(callback) -- @sorted
	for i = 0, 49 do
		numbers[i] = i * 7 % 50
	end
	ffi.C.qsort(numbers, 50, 4, callback)
end
jit.off(sorted)

local function cdata() -- @cdata
	local sum = 0
	for i = 1, 100 do
		local buffer = ffi.new("uint8_t[64]")
		ffi.fill(buffer, 64, i)
		ffi.copy(buffer, "some text")
		sum = sum + #ffi.string(buffer) + tonumber(ffi.cast("int32_t", i))
	end
	return sum
end

local point
point = ffi.metatype("point", {
	__add = function(a, b) -- @add
		spin()
		return point(a.x + b.x, a.y + b.y)
	end,
	__index = {
		length = function(self) -- @length
			return spin() + self.x
		end,
	},
})

local function objects() -- @objects
	local sum = point(1, 2)
	for _ = 1, 10 do
		sum = sum + point(1, 1)
	end
	return sum:length() + spin()
end

local finish = ready()
while os.clock() < finish do
	roots()
	sorted(compare_callback)
	sorted(deep_callback)
	cdata()
	objects()
end
-- SPDX-License-Identifier: MIT
