-- SPDX-License-Identifier: MIT
-- asleep.lua LIBRARY: starts threads that sleep (asleep.c), says how many, and waits for a lock itself.
local ffi = require("ffi")
ffi.cdef("int pool_start(void); int pthread_mutex_timedlock(void *, const long *); int pthread_mutex_init(void *, void *);")
local pool = ffi.load(arg[1])
local mutex, later = ffi.new("long[16]"), ffi.new("long[2]", { 2 ^ 31 - 1, 0 })

local function lock() return ffi.C.pthread_mutex_timedlock(mutex, later) + 1 end
local function waits() return lock() + 1 end

jit.off()
ffi.C.pthread_mutex_init(mutex, nil)
lock()
print("ready " .. pool.pool_start())
io.stdout:flush()
waits()
