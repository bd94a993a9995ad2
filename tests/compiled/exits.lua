-- SPDX-License-Identifier: MIT
-- exits.lua: a loop whose exits are taken rarely, some times, and often. Prints each exit
-- as often as the VM reports it, and each side trace with its parent and exit; says "ready",
-- and waits for a line; then it spends its time in the loop.
local taken, sides = {}, {}

local function exit(trace, number)
	local key = trace .. "\t" .. number
	taken[key] = (taken[key] or 0) + 1
end

local parents = {}
local function trace(what, number, _, _, parent, exitno)
	if what == "start" then
		parents[number] = parent and parent > 0 and parent .. "\t" .. exitno
	elseif what == "stop" and parents[number] then
		sides[parents[number]] = number
	elseif what == "flush" then
		taken, sides = {}, {}
	end
end
jit.off(exit)
jit.off(trace)
jit.opt.start("hotloop=5", "hotexit=20")
jit.attach(exit, "texit")
jit.attach(trace, "trace")
collectgarbage("stop")

local made
local function make(i) -- is not compiled
	made = function()
		return i
	end
end

local function branches(n, rare, some, often, failing)
	local sum = 0
	for i = 1, n do
		if i == rare then
			sum = sum + 1
		end
		if i == some then
			sum = sum + 2
		end
		if i % often == 0 then
			sum = sum - 1
			sum = bit.bxor(sum, i)
			sum = sum % 1001 / 3
			sum = sum % 777 / 3
		end
		if i == failing then
			make(i)
		end
	end
	return sum
end

branches(100, 0, 0, 1000, 0)
for _ = 1, 3 do
	branches(100, 50, 0, 1000, 0)
end
for _ = 1, 11 do
	branches(100, 0, 60, 1000, 0)
end
for _ = 1, 22 do
	branches(100, 0, 0, 1000, 70)
end
for _ = 1, 30 do
	branches(100, 0, 0, 3, 0)
end
jit.attach(exit)
jit.attach(trace)
jit.off()
for key, count in pairs(taken) do
	print("taken", key, count)
end
for key, number in pairs(sides) do
	print("side", key, number)
end
io.write("ready\n")
io.flush()
io.read()
jit.on()
while true do
	branches(1e6, 0, 0, 3, 0)
end
