-- What a Lua function calls, in a loop of its own for each; args: on|off SECONDS CPATH.
local ffi = require("ffi")
ffi.cdef("double sqrt(double);")
package.cpath = arg[3]
local has_cjson, cjson = pcall(require, "cjson")
if arg[1] == "off" then
	jit.off()
end

-- The functions take about the same time each.
local rounds = arg[1] == "off" and 20000 or 200000
local function heavy()
	local sum = 0
	for i = 1, rounds do
		sum = sum + ffi.C.sqrt(i)
	end
	return sum
end

local text = ("key=value; "):rep(200)
local function searches()
	local found = 0
	for _ = 1, 80 do
		local position = string.find(text, "no such .- text")
		found = found + (position or 0)
	end
	return found
end

local function replaces()
	local replaced = ""
	for _ = 1, 20 do
		replaced = string.gsub(text, "%w+=", "x")
	end
	return replaced
end

local document = {}
for i = 1, 100 do
	document[i] = { name = "n" .. i, value = i / 3 }
end
local function encodes()
	local encoded
	for _ = 1, 20 do
		encoded = cjson.encode(document)
	end
	return encoded
end

io.write(has_cjson and "ready\n" or "no cjson\nready\n")
io.flush()
local finish = os.clock() + tonumber(arg[2])
while os.clock() < finish do
	heavy()
	searches()
	replaces()
	if has_cjson then
		encodes()
	end
end
-- SPDX-License-Identifier: MIT
