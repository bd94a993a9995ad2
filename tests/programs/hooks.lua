-- A debug hook runs on top of the function that it interrupts.
-- no-testimony: the hook is the program's own
-- stack: main work@work (spin (_@hook (spin)?)? | _@hook (spin)?)?
-- stack: main _@hook (spin)?
-- stack: main [os.clock] (_@hook (spin)?)?
local spin, ready = dofile("harness.lua")

local function hook() -- @hook
	spin()
end

local function work() -- @work
	for _ = 1, 10 do
		spin(100)
	end
end

local finish = ready()
debug.sethook(hook, "", 500)
while os.clock() < finish do
	work()
end
