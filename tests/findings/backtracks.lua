-- SPDX-License-Identifier: MIT
-- A pattern with two lazy items before what is not there: it is tried at each pair of places.
local function parse(line)
	local first, last = string.find(line, "(.-)=(.-);$") -- fault
	return first, last
end

local line = string.rep("key=value&", 60)
print("ready")
io.stdout:flush()
while true do
	parse(line)
end
