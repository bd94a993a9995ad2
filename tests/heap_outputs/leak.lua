-- SPDX-License-Identifier: MIT
-- leak.lua STEPS [KIND]: leaks in four ways, as much more with each line that it reads: a cache without
-- a bound, closures of a timer, coroutines that are never resumed, cdata with a finalizer. With KIND only
-- in this way, or in none; all else that it makes it drops again.
local ffi = require("ffi")
ffi.cdef([[ struct reading { double values[16]; }; ]])
jit.off()

local steps, kind = tonumber(arg[1]), arg[2]

local cache = {}
local function lookup(key)
	cache[key] = cache[key] or { body = string.rep("x", 200) .. key }
	return cache[key]
end

local timers = {}
local function schedule(n)
	timers[#timers + 1] = function() return n end -- a closure
end

local waiting = {}
local function serve()
	local rows = { 1, 2, 3 }
	coroutine.yield(rows) -- parked
end
local function accept()
	waiting[#waiting + 1] = coroutine.create(serve)
	coroutine.resume(waiting[#waiting])
end

local readings = {}
local function measure()
	readings[#readings + 1] = ffi.gc(ffi.new("struct reading"), function() end)
end

local function drop(n)
	cache["user:" .. n] = kind == "cache" and cache["user:" .. n] or nil
	timers[#timers] = kind == "timer" and timers[#timers] or nil
	waiting[#waiting] = kind == "coroutine" and waiting[#waiting] or nil
	readings[#readings] = kind == "cdata" and readings[#readings] or nil
end

package.loaded["my.app"] = { lookup = lookup, schedule = schedule, accept = accept, measure = measure }

local n = 0
repeat
	for _ = 1, steps do
		n = n + 1
		lookup("user:" .. n)
		schedule(n)
		accept()
		measure()
		if kind then drop(n) end
	end
	io.write("ready\n")
	io.flush()
until not io.read()
