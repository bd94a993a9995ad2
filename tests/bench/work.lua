-- Work of one kind, in equal pieces of some tenths of a millisecond, from when a
-- line comes: luajit work.lua KIND [REPORT [SWITCH]]
-- With REPORT, a byte is written after each piece: whoever counts them knows how
-- fast it is. While there is a file SWITCH, LuaJIT's own profiler runs as this
-- says: the options of jit.p.
local kind, report, switch = arg[1], arg[2] == "report", arg[3]

local function interpreted()
	local list, sum = {}, 0
	for i = 1, 100 do
		list[i] = { value = i }
	end
	return function()
		for _ = 1, 200 do
			for i = 1, 100 do
				sum = (sum + list[i].value * 3) % 1000003
			end
		end
	end
end

local function compiled()
	return function()
		local sum = 0
		for i = 1, 60000 do
			sum = (sum + i * 3) % 1000003
		end
		return sum
	end
end

local function in_c()
	local text = ("the quick brown fox "):rep(50)
	return function()
		local count = 0
		for _ = 1, 30 do
			count = count + select(2, text:gsub("%w+", string.upper))
		end
		return count
	end
end

local function allocating()
	return function()
		local made
		for i = 1, 400 do
			made = { i, name = "number " .. i % 100, last = { i } }
		end
		return made
	end
end

local profiling = false

-- As whether the file is there.
local function switch_profiler()
	local file = io.open(switch)
	local options = file and file:read("*a")
	if file then
		file:close()
	end
	if options and not profiling then
		require("jit.p").start(options, "/dev/null")
	elseif profiling and not options then
		require("jit.p").stop()
	end
	profiling = options ~= nil
end

if kind == "interpreted" then
	jit.off()
end
io.stdout:setvbuf("no")
local piece = ({ interpreted = interpreted, compiled = compiled, in_c = in_c, allocating = allocating })[kind]()
io.read("*l")
while true do
	piece()
	if report then
		io.write(".")
	end
	if switch then
		switch_profiler()
	end
end
-- SPDX-License-Identifier: MIT
