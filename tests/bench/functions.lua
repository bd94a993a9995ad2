-- So many functions take turns, or ever new ones: luajit functions.lua COUNT|new
jit.off()

local serial = 0

local function make()
	serial = serial + 1
	return loadstring("local sum = 0 for i = 1, 2000 do sum = sum + i % 7 end return sum", "=function_" .. serial)
end

local count = tonumber(arg[1])
local functions = {}
for i = 1, count or 0 do
	functions[i] = make()
end
io.write("ready\n")
io.flush()
for i = 1, math.huge do
	local run = count and functions[i % count + 1] or make()
	local sum = run()
end
-- SPDX-License-Identifier: MIT
