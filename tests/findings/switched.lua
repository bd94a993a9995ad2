-- SPDX-License-Identifier: MIT
-- Somebody has switched the compiler off for the function that takes the time.
local function sum(list) -- fault
	local total = 0
	for i = 1, #list do
		total = total + list[i] % 7
	end
	return total
end
jit.off(sum)

local list = {}
for i = 1, 1000 do
	list[i] = i
end
print("ready")
io.stdout:flush()
while true do
	sum(list)
end
