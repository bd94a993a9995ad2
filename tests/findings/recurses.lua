-- SPDX-License-Identifier: MIT
-- Walks a list by recursion, thousands of calls deep.
local function length(node)
	if not node then return 0 end
	return 1 + length(node.next) -- fault
end

local list
for _ = 1, 15000 do
	list = { next = list }
end
print("ready")
io.stdout:flush()
while true do
	length(list)
end
