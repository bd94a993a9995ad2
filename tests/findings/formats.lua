-- SPDX-License-Identifier: MIT
-- Turns numbers into text and back to compare them.
local function same(a, b)
	return string.format("%.6f", a) == string.format("%.6f", b) -- fault
end

local list = {}
for i = 1, 1000 do
	list[i] = math.sqrt(i)
end
print("ready")
io.stdout:flush()
local count = 0
while true do
	for i = 2, #list do
		count = count + (same(list[i], list[i - 1]) and 1 or 0)
	end
end
