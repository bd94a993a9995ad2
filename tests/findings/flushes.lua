-- SPDX-License-Identifier: MIT
-- Throws all compiled code away with each request, and so compiles it again and again.
local function handle(request)
	local sum = 0
	for i = 1, 300 do
		if i % 2 == 0 then sum = sum + i * request else sum = sum - i end
		if i % 3 == 0 then sum = sum + i % 7 end
		if i % 5 == 0 then sum = sum + i % 11 end
	end
	return sum
end

print("ready")
io.stdout:flush()
local n = 0
while true do
	n = n + 1
	handle(n)
	jit.flush() -- fault
end
