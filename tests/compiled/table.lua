-- table.lua: traces of every kind, and code that cannot be compiled. Prints what
-- jit.util knows of each trace, says "ready" and waits for a line; then it
-- spends its time in one loop until it is killed.
local util = require("jit.util")
local parents = {}
local function note(what, number, _, _, parent)
	if what == "start" then
		parents[number] = parent
	end
end
jit.off(note)
jit.attach(note, "trace")
jit.opt.start("hotloop=3", "hotexit=2", "maxmcode=256")

local function branches(n)
	local sum = 0
	for i = 1, n do
		if i % 3 == 0 then
			sum = sum + i
		else
			sum = sum - 1
		end
	end
	return sum
end

local function stitched(n)
	local time = 0
	for _ = 1, n do
		time = time + os.clock()
	end
	return time
end

-- What comes after the second call cannot be compiled: no trace is stitched on to the first one's.
local function given_up(n)
	local made
	for i = 1, n do
		local time = os.clock()
		time = time + os.time()
		made = function()
			return time + i
		end
	end
	return made
end

local function fib(n)
	if n < 2 then
		return n
	end
	return fib(n - 1) + fib(n - 2)
end

local function down(n)
	if n == 0 then
		return 0
	end
	return down(n - 1)
end

local kept = {}
local function closures(n)
	for i = 1, n do
		kept[i % 10] = function()
			return i
		end
	end
end

local function hot()
	local sum = 0
	for i = 1, 1e7 do
		sum = sum + i
	end
	return sum
end

for _ = 1, 100 do
	branches(100)
	stitched(10)
	given_up(10)
	fib(10)
	down(50)
end
closures(400000)
hot()
jit.off()
jit.attach(note)

for number = 1, 1000 do
	local info = util.traceinfo(number)
	if info then
		local mcode, address = util.tracemc(number)
		print(number, info.link, info.linktype, info.nexit, info.nins, mcode and #mcode or 0,
			string.format("0x%x", address % 2 ^ 48), parents[number] or 0)
	end
end
io.write("ready\n")
io.flush()
io.read()
jit.on()
while true do
	hot()
end
-- SPDX-License-Identifier: MIT
