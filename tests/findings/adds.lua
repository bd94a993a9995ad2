-- SPDX-License-Identifier: MIT
-- Without fault: a numeric loop that is compiled.
local function sum(n)
	local total = 0
	for i = 1, n do
		total = total + i % 7
	end
	return total
end

print("ready")
io.stdout:flush()
while true do
	sum(1e6)
end
