-- SPDX-License-Identifier: MIT
-- Without fault: work in steps and sleep between them, as games do. No event waits for the end of a step.
local ffi = require("ffi")
ffi.cdef("int usleep(unsigned int microseconds);")

local function step()
	local sum, from = 0, os.clock()
	while os.clock() - from < 0.05 do
		for i = 1, 1e6 do
			sum = (sum + i) * 0.5
		end
	end
	return sum
end

print("ready")
io.stdout:flush()
while true do
	step()
	ffi.C.usleep(20000)
end
