-- 10,000 coroutines that wait in three kinds of places, and one of each other
-- state. Then it sleeps, or makes garbage: parked.lua idle|busy
local parked = {}

local function step()
	coroutine.yield() -- @step
end

local function first_kind()
	step() -- @first
end

local function second_kind()
	pcall(function() -- @second
		step() -- @second_inside
	end)
	return true
end

local function third_kind()
	for i = 1, 2 do
		coroutine.yield(i) -- @third
	end
end

local function park(count, kind)
	for _ = 1, count do
		local co = coroutine.create(kind)
		coroutine.resume(co)
		parked[#parked + 1] = co
	end
end

park(5000, first_kind)
park(3000, second_kind)
park(2000, third_kind)
parked[#parked + 1] = coroutine.create(third_kind) -- not started
park(1, function() end) -- has ended
park(1, function()
	local function fail()
		error("on purpose") -- @fail
	end
	fail() -- @failing
end)

local function spin(seconds)
	local finish = os.clock() + seconds
	while os.clock() < finish do
		local garbage = {}
		for i = 1, 100 do
			garbage[i] = { i }
		end
	end
end

-- One more is normal while it runs the innermost.
local normal = coroutine.wrap(function()
	local running = coroutine.wrap(function()
		print("ready")
		io.stdout:flush()
		if arg[1] == "busy" then
			spin(40)
		else
			io.read()
		end
	end)
	running() -- @resuming
end)
normal()
-- SPDX-License-Identifier: MIT
