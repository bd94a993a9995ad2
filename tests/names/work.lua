-- LuaJIT's own work, one kind a function; args: on|off SECONDS.
if arg[1] == "off" then
	jit.off()
end

local function tables()
	local last
	for i = 1, 2000 do
		last = { i, i, i, i }
	end
	return last
end

local function stores()
	local keys = {}
	for i = 1, 2000 do
		keys[i * 2.5] = i
	end
	return keys
end

local function closures()
	local last
	for i = 1, 2000 do
		last = function()
			return i
		end
	end
	return last
end

local function concatenates()
	local text
	for i = 1, 2000 do
		text = "number " .. i .. " of many"
	end
	return text
end

io.write("ready\n")
io.flush()
local finish = os.clock() + tonumber(arg[2])
while os.clock() < finish do
	tables()
	stores()
	closures()
	concatenates()
end
-- SPDX-License-Identifier: MIT
