-- SPDX-License-Identifier: MIT
-- Leaks in four ways, as requests ask for it: a cache without a bound, closures of timers that
-- are far away, coroutines that are never resumed, cdata with a finalizer.
local ffi = require("ffi")
ffi.cdef("struct reading { double values[16]; };")

local leaky, cache, waiting, readings = {}, {}, {}, {}

function leaky.lookup(key)
	cache[key] = cache[key] or { body = string.rep("x", 200) .. key }
	return cache[key]
end

function leaky.schedule(n)
	return assert(ngx.timer.at(3600, function() return n end)) -- @closure
end

local function serve() -- @serve
	local rows = { 1, 2, 3 }
	coroutine.yield(rows) -- @parked
end

function leaky.accept()
	local made = coroutine.create(serve)
	waiting[#waiting + 1] = made
	return coroutine.resume(made)
end

function leaky.measure() -- @measure
	readings[#readings + 1] = ffi.gc(ffi.new("struct reading"), function() end) -- @finalizer
end

return leaky
