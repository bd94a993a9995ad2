-- SPDX-License-Identifier: MIT
-- Each list begins empty and grows step by step, at every power of two by a rehash.
local function fill(keys)
	local list = {}
	for i = 1, #keys do
		list[keys[i]] = i -- fault
	end
	return list
end

local keys = {}
for i = 1, 3000 do
	keys[i] = "key:" .. i
end
print("ready")
io.stdout:flush()
while true do
	fill(keys)
end
