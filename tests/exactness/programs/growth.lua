-- The Lua stack grows, and moves, in the middle of calls.
local function down(n, ...)
	@ if n == 0 then
		@ return ...
	end
	@ return (down(n - 1, n, ...))
end

local function wide(...)
	@ local a = { ... }
	@ return select("#", ...)
end

return function()
	@ local thread = coroutine.create(down)
	@ coroutine.resume(thread, 15)
	@ thread = coroutine.create(wide)
	@ coroutine.resume(thread, unpack({}, 1, 100))
	@ thread = nil
end
-- SPDX-License-Identifier: MIT
