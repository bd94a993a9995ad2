-- SPDX-License-Identifier: MIT
-- show.lua FILE: code of many kinds, whose traces jit.dump writes to FILE while they are made, and
-- whose bytecode jit.bc writes to FILE.bc. Says "ready", and waits for a line; then it works on.
local path = arg[1]
local bc = require("jit.bc")
local ok, ffi = pcall(require, "ffi")

collectgarbage("stop")
jit.opt.start("hotloop=5", "hotexit=3")

local kept = { 10, 20, 30, name = "a name that is longer than twenty characters", short = "k\n\t\1" }
local count = 0

local function add(a, b)
	return a + b
end

local function numbers(n)
	local sum = 0
	for i = 1, n do
		sum = add(sum, kept[i % 3 + 1])
		if i % 3 == 0 then
			sum = sum - math.floor(sum / 7) + math.sqrt(i) + math.sin(i) + i ^ 0.5 + math.min(i, 1e300)
		end
		count = count + 1
	end
	return sum
end

local function strings(n)
	local text, length = "", 0
	for i = 1, n do
		text = kept.name .. tostring(i) .. kept.short
		length = length + #text + (tonumber("12") or 0) + text:byte(3) + #text:sub(2, 5) + #("x"):rep(3)
		if text == "never this one" then
			length = 0
		end
	end
	return length
end

local function tables(n)
	local last
	for i = 1, n do
		local point = { x = i, y = { i, i + 1 } }
		point[i % 5] = "value"
		last = point
		kept[i] = setmetatable({}, { __index = point }).x
		table.insert(point.y, 3)
	end
	return last
end

local function pairs_of(list)
	local sum = 0
	for _, value in ipairs(list) do
		sum = sum + value
	end
	for key, value in pairs(list) do
		sum = sum + (type(key) == "number" and value or #key)
	end
	return sum
end

local function bits(n)
	local x = 1
	for i = 1, n do
		x = bit.bxor(bit.lshift(x, 3), bit.band(i, 0xff)) + bit.bnot(i) + bit.bswap(i) % 3
	end
	return x
end

local function varargs(n, ...)
	local sum = 0
	for i = 1, n do
		local a, b = ...
		sum = sum + select("#", ...) + a + (b and 1 or 2)
	end
	return sum
end

local function depth(n)
	return n <= 0 and 0 or 1 + depth(n - 1)
end

local function caught(n)
	local good = 0
	for i = 1, n do
		if pcall(add, i, 1) then
			good = good + 1
		end
	end
	return good
end

local made
local function stitched(n)
	local sum = 0
	for i = 1, n do
		sum = sum + #os.date("%Y")
		made = i
	end
	return sum
end

local foreign
if ok then
	ffi.cdef("typedef struct { int32_t a; double b; uint8_t c[4]; int64_t d; } show_point; int abs(int); size_t strlen(const char *);")
	local point = ffi.new("show_point[8]")
	foreign = function(n)
		local sum = 0LL
		for i = 1, n do
			local at = point[i % 8]
			at.a = at.a + i
			at.b = at.b + 0.5
			at.c[i % 4] = i
			at.d = at.d + sum
			sum = sum + at.a + ffi.C.abs(-i) + tonumber(ffi.C.strlen("four"))
		end
		return sum
	end
end

local function work(n)
	numbers(n)
	strings(n)
	tables(n)
	pairs_of({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, last = 11, other = 12, third = 13, fourth = 14 })
	bits(n)
	varargs(n, 1, nil, "x")
	depth(30)
	caught(n)
	stitched(n)
	if foreign then
		foreign(n)
	end
end

local dump = require("jit.dump")
dump.on("tbirsmT", path)
for _ = 1, 60 do
	work(40)
end
dump.off()
jit.off()
local file = assert(io.open(path .. ".bc", "w"))
for _, f in ipairs({ numbers, strings, tables, varargs, work }) do
	bc.dump(f, file)
end
file:close()
io.write("ready\n")
io.flush()
io.read()
jit.on()
while true do
	numbers(1e5)
end
