-- The interpreter at work on few bytecodes and fast functions; args: SECONDS.
jit.off()
local floor, char = math.floor, string.char

local function works()
	local sum = 0
	for i = 1, 1000 do
		sum = sum + i % 7
		sum = sum + floor(i)
		char(65)
	end
	return sum
end

io.write("ready\n")
io.flush()
local finish = os.clock() + tonumber(arg[1])
while os.clock() < finish do
	works()
end
-- SPDX-License-Identifier: MIT
