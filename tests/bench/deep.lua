-- A stack of about so many Lua frames, with calls of C functions that Lua called
-- and that call Lua again among them: luajit deep.lua SECONDS FRAMES [SORTS]
jit.off()

-- At the end of the stack is where the time goes, not on the way there.
local work = math.max(3000, 100 * tonumber(arg[2]))

local function deep(levels)
	if levels > 0 then
		return 1 + deep(levels - 1)
	end
	local sum = 0
	for i = 1, work do
		sum = sum + i % 3
	end
	return sum
end

-- Each sort is three frames: this function, table.sort, and what that calls.
local sorts = tonumber(arg[3] or 1)
local levels = tonumber(arg[2]) - 2 - 3 * sorts

local function sort(left)
	if left == 0 then
		return deep(levels)
	end
	table.sort({ 3, 1, 2 }, function(a, b)
		sort(left - 1)
		return a < b
	end)
end

io.write("ready\n")
io.flush()
local finish = os.clock() + tonumber(arg[1])
while os.clock() < finish do
	-- Often, for the clock is a deep stack of another kind.
	for _ = 1, 100 do
		sort(sorts)
	end
end
-- SPDX-License-Identifier: MIT
