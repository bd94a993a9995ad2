-- A debug hook runs on top of the function that it interrupts.
-- no-testimony: the hook is the program's own
-- stack: main work@work! (spin (_@hook (spin)?)? | _@hook (spin)?)?
-- stack: main _@hook (spin)?
-- stack: main [os.clock] (_@hook (spin)?)?
local spin, ready = dofile("harness.lua")

local function hook() -- @hook
	spin()
end

local function work() -- @work
	local sum = 0
	for i = 1, 2000 do
		sum = sum + i % 7
	end
	return sum + spin(1000)
end

local finish = ready()
debug.sethook(hook, "", 500)
while os.clock() < finish do
	work()
end
-- SPDX-License-Identifier: MIT
