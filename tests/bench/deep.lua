-- A stack of some Lua frames above a C function that Lua called; args: SECONDS FRAMES.
jit.off()

local function deep(levels)
	if levels > 0 then
		return 1 + deep(levels - 1)
	end
	local sum = 0
	for i = 1, 3000 do
		sum = sum + i % 3
	end
	return sum
end

-- Others are the main chunk, table.sort, the function that it calls, and the innermost.
local levels = tonumber(arg[2]) - 4
local finish = os.clock() + tonumber(arg[1])
while os.clock() < finish do
	-- Often, for the clock is a deep stack of another kind.
	for _ = 1, 100 do
		table.sort({ 3, 1, 2 }, function(a, b)
			deep(levels)
			return a < b
		end)
	end
end
