-- A stack of 20 Lua frames above a C function that Lua called; args: SECONDS.
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

local finish = os.clock() + tonumber(arg[1])
while os.clock() < finish do
	table.sort({ 3, 1, 2 }, function(a, b)
		deep(16)
		return a < b
	end)
end
