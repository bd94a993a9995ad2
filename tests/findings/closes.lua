-- SPDX-License-Identifier: MIT
-- Makes a function in each round of a hot loop, which LuaJIT does not compile.
local function apply(list, by)
	local sum = 0
	for i = 1, #list do
		local scale = function(x) return x * by end -- fault
		sum = sum + scale(list[i])
	end
	return sum
end

local list = {}
for i = 1, 1000 do
	list[i] = i
end
print("ready")
io.stdout:flush()
while true do
	apply(list, 3)
end
