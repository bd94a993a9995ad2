-- SPDX-License-Identifier: MIT
-- A queue as a list: each removal from the front moves all that follows.
local queue = {}
for i = 1, 5000 do
	queue[i] = i
end

local function turn()
	local first = table.remove(queue, 1) -- fault
	queue[#queue + 1] = first
end

print("ready")
io.stdout:flush()
while true do
	turn()
end
