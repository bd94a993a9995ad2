-- Resume, yield, end and failure of coroutines, one inside another.
local function relay(value)
	@ coroutine.yield(value)
	@ return value
end

local function producer(a)
	@ coroutine.yield(a)
	@ relay(2)
	@ return 3
end

local function outer()
	@ local inner = coroutine.wrap(producer)
	@ inner(1)
	@ coroutine.yield(5)
	@ inner()
	@ return
end

local function failing()
	@ local x = 1
	@ error("failed")
end

local function protected()
	@ pcall(relay, 7)
	@ return 1, 2, 3
end

return function()
	@ local thread = coroutine.create(producer)
	@ coroutine.resume(thread, 1)
	@ coroutine.resume(thread)
	@ coroutine.resume(thread)
	@ coroutine.resume(thread)
	@ local wrapped = coroutine.wrap(outer)
	@ wrapped()
	@ wrapped()
	@ coroutine.resume(coroutine.create(failing))
	@ wrapped = coroutine.wrap(protected)
	@ local a = wrapped()
	@ local b, c, d = wrapped()
	@ local s = coroutine.status(thread)
end
-- SPDX-License-Identifier: MIT
