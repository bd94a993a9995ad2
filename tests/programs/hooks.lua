-- A debug hook runs on top of the function that it interrupts, without a name.
-- no-testimony: the hook is the program's own
-- stack: main work@work (spin (@hook (spin)?)? | @hook (spin)?)?
-- stack: main @hook (spin)?
-- stack: main [os.clock] (@hook (spin)?)?
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
