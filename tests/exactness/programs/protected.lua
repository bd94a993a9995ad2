-- pcall, xpcall, errors that unwind through Lua and C, and their handlers.
local function work(...)
	@ local x = 1
	@ return x, ...
end

local function burrow(n)
	@ if n == 0 then
		@ error("bottom")
	end
	@ burrow(n - 1)
	@ return
end

local function missing()
	@ local nothing
	@ return nothing.field
end

local function handler(message)
	@ local x = message
	@ return x
end

local function nested()
	@ local ok, message = pcall(burrow, 2)
	@ error(message, 0)
end

return function()
	@ local ok = pcall(work, 1, 2)
	@ ok = xpcall(work, handler, 3)
	@ ok = pcall(burrow, 2)
	@ ok = xpcall(burrow, handler, 2)
	@ ok = xpcall(missing, handler)
	@ ok = pcall(nested)
	@ ok = pcall(error)
	@ ok = pcall(string.rep)
	@ ok = pcall(pcall, work)
end
-- SPDX-License-Identifier: MIT
