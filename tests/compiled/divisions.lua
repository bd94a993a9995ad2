-- divisions.lua: a function whose divisions wait for each other, inlined into a
-- loop that does next to nothing. Says "TRUTH ready", the share of time that is the
-- function's by the CPU time of the same loop without it, and goes on until it is killed.
local function divide(x)
	x = x / 1.0001 -- @first
	x = x / 1.0002
	x = x / 1.0003
	x = x / 1.0004
	x = x / 1.0005
	x = x / 1.0006
	x = x / 1.0007
	x = x / 1.0008
	x = x / 1.0009
	x = x / 1.0010 -- @last
	return x
end

local function plain(n)
	local x = 1e300
	for _ = 1, n do
		x = x + 1
	end
	return x
end

local function divided(n)
	local x = 1e300
	for _ = 1, n do
		x = divide(x)
		x = x + 1
	end
	return x
end

local function time(run)
	run(1000)
	local begin = os.clock()
	run(1e7)
	return os.clock() - begin
end

io.write(("%.4f ready\n"):format(1 - time(plain) / time(divided)))
io.flush()
while true do
	divided(1e7)
end
-- SPDX-License-Identifier: MIT
