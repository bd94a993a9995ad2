-- Nested calls that end asleep in a C function, within a coroutine.

local function wait() io.read() return 1 end
local function outer(n) if n > 0 then return 1 + outer(n - 1) end return wait() + 1 end

local other = coroutine.create(function() coroutine.yield() return 1 end)
coroutine.resume(other)
local work = coroutine.wrap(function() return outer(2) + 1 end)

io.write("ready\n")
io.flush()
print(work() + 1)
-- SPDX-License-Identifier: MIT
