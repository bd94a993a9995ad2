-- coroutine.resume() and the function of coroutine.wrap(), called in each way that there is.
local resume, create, wrap, yield = coroutine.resume, coroutine.create, coroutine.wrap, coroutine.yield

local function inner(...)
	@ local sum = select("#", ...)
	@ yield(sum)
	@ return sum
end

local function twice(...)
	@ inner(...)
	@ inner(1)
	@ return
end

local thread_meta = { __add = resume }
local resumer = setmetatable({}, { __index = function(_, key)
	@ local ok = resume(create(inner), 1)
	@ return key
end })

local function by_tail(...)
	@ local thread = create(inner)
	@ return resume(thread, ...)
end

local function by_iteration()
	@ local count = 0
	@ local each = wrap(twice)
	@ for sum in each do
		@ count = count + 1
		@ if count > 1 then
			@ break
		end
	end
	@ return count
end

local function nested(depth)
	@ if depth == 0 then
		@ return by_tail(1, 2)
	end
	@ local ok, result = resume(create(nested), depth - 1)
	@ return result
end

local function all()
	@ local thread = create(inner)
	@ local ok = pcall(resume, thread, 1, 2)
	@ ok = pcall(resume, thread)
	@ ok = xpcall(resume, print, create(twice), 1)
	@ ok = pcall(wrap(inner), 1)
	@ ok = resumer.field
	@ debug.setmetatable(thread, thread_meta)
	@ ok = create(inner) + 1
	@ debug.setmetatable(thread, nil)
	@ ok = by_tail(1, 2, 3)
	@ ok = by_iteration()
	@ ok = nested(2)
	@ ok = pcall(pcall, resume, create(twice))
end

return function()
	@ local run = wrap(all)
	@ run()
end
-- SPDX-License-Identifier: MIT
