-- SPDX-License-Identifier: MIT
-- Makes short-lived tables for every entry of a request, beside a heap that is marked again and again.
local kept = {}
for i = 1, 200000 do
	kept[i] = { i, tostring(i) }
end

local function points(n)
	local list = {}
	for i = 1, n do
		list[i] = { x = i, y = { i, i + 1 } } -- fault
	end
	return list
end

print("ready")
io.stdout:flush()
while true do
	points(200)
end
