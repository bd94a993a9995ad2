-- Coroutines that wait for known things, and are resumed now and then:
-- parked.lua SECONDS. For each that waits for one thing, three wait for another.

local ffi = require("ffi")

ffi.cdef([[ int poll(void *files, unsigned long count, int timeout_ms); ]])

local function await_upstream()
	coroutine.yield()
end

local function await_timer()
	coroutine.yield()
end

local function handle(await)
	while true do
		await()
	end
end

local waiting = {}
for i = 1, 400 do
	waiting[i] = coroutine.create(handle)
	coroutine.resume(waiting[i], i % 4 == 0 and await_timer or await_upstream)
end
-- What has not begun and what has ended waits for nothing.
local others = { coroutine.create(handle), coroutine.create(function() end) }
coroutine.resume(others[2])

print("ready")
io.flush()
local begin = os.time()
repeat
	ffi.C.poll(nil, 0, 20)
	for i = 1, #waiting, 10 do
		coroutine.resume(waiting[i])
	end
until os.time() - begin >= tonumber(arg[1])
-- SPDX-License-Identifier: MIT
