-- states.lua SECONDS: the VM's states, each in a function of its own.
local finish = os.clock() + tonumber(arg[1])

-- Never compiled.
local function interpreted()
	local sum = 0
	for i = 1, 20000 do
		sum = sum + i % 7
	end
	return sum
end
jit.off(interpreted)

local function compiled()
	local sum = 0
	for i = 1, 2000000 do
		sum = sum + i % 7
	end
	return sum
end

local text = ("x"):rep(4000)
local function in_c()
	for _ = 1, 20 do
		text:find("y*z")
	end
end
jit.off(in_c)

local kept = {}
for i = 1, 50000 do
	kept[i] = { i }
end
local function collecting()
	collectgarbage()
end
jit.off(collecting)

-- A new function each time: recorded, optimised, assembled and left again.
local source = [[
	local t, f = ..., math.floor
	local sum = 0
	for i = 1, 100 do
		local a, b = t[i], t[101 - i]
		if a < b then sum = sum + a * b else sum = sum - f(a / b) end
		t[i] = t[i] + sum % 3
	end
	return sum
]]
local numbers = {}
for i = 1, 100 do
	numbers[i] = i
end
local function compiling()
	for _ = 1, 60 do
		loadstring(source)(numbers)
	end
end

-- An exit that has no side trace of its own.
local function leaving()
	local sum = 0
	for i = 1, 20000 do
		if i % 5 == 0 then
			sum = sum + #tostring(i)
		end
	end
	return sum
end

jit.opt.start("hotexit=60000")
io.write("ready\n")
io.flush()
repeat
	interpreted()
	compiled()
	in_c()
	collecting()
	compiling()
	leaving()
until os.clock() > finish
-- SPDX-License-Identifier: MIT
