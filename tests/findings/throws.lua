-- SPDX-License-Identifier: MIT
-- Leaves a search by an error that the caller catches: errors as control flow.
local function search(list, wanted)
	for i = 1, #list do
		if list[i] == wanted then
			error({ found = i }) -- fault
		end
	end
end

local list = { 3, 1, 4, 1, 5, 9, 2, 6 }
print("ready")
io.stdout:flush()
local found = 0
while true do
	local _, result = pcall(search, list, 4)
	found = found + result.found
end
