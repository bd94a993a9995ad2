-- A process that lies about itself: its own LuaJIT objects say what is not so. What lies is either
-- asleep or never looked at by LuaJIT itself, and the collector is off. Offsets are those of GC64.
local ffi = require("ffi")
jit.off()
collectgarbage("stop")

local evil = "</script><script>alert(1)</script>;\n\27[31m\27]0;title\7&\"' \255\xc3\xa9\xe2\x80\xae"
local kept = {}		-- nothing that lies is ever freed

local function address(object)
	return tonumber(tostring(object):match("0x(%x+)"), 16)
end

local function words(at)
	return ffi.cast("uint64_t *", at)
end

local function numbers(at)
	return ffi.cast("uint32_t *", at)
end

local function proto(f)
	return tonumber(words(address(f) + 32)[0]) - 104
end

local function chunk(name)
	local f = assert(loadstring([[
		local spin = ...
		local evil = { ["]] .. "call" .. [["] = spin }
		for _ = 1, 50 do evil.call() end
	]], name))
	kept[#kept + 1] = name
	kept[#kept + 1] = f
	return f
end

-- Names of any bytes, of a megabyte, and of four gigabytes.
local function of_length(name, length)
	local f = chunk(name)
	numbers(tonumber(ffi.cast("uintptr_t", ffi.cast("const char *", name))) - 4)[0] = length
	return f
end

local running = {
	chunk("=" .. evil),
	chunk("@" .. evil),
	chunk("=" .. ("\27;</script>\n"):rep(80000)),
	of_length("@four gigabytes", 0xffffffff),
	of_length("@two gigabytes", 0x7fffffff),
	of_length("@one more than fits", 0xfffffff0),
}

-- Prototypes that are larger than all memory, lie over one another, and whose parts are elsewhere.
for _, field in ipairs { 12, 48, 52, 56, 64, 80, 88, 96 } do
	for _, value in ipairs { 0, 1, 0x7fffffff, 0xffffffff } do
		local f = chunk("@liar " .. field .. " " .. value)
		if field < 64 then
			numbers(proto(f) + field)[0] = value
		else
			words(proto(f) + field)[0] = value
		end
		if field ~= 48 and field ~= 52 then
			running[#running + 1] = f
		end
	end
end

-- Coroutines whose frames lead in circles, out of their stacks, into each other's and nowhere.
local function sleeper(depth)
	if depth > 0 then
		return (sleeper(depth - 1))
	end
	return coroutine.yield()
end

local other
for _, link in ipairs { 0, 1, 2, 3, 5, 6, 7, 8 + 1, 16 + 2, 16 + 3, 16 + 5, 0x7ffffff8 + 1, 2 ^ 40, 2 ^ 47 } do
	local thread = coroutine.create(sleeper)
	coroutine.resume(thread, 5)
	local L = address(thread)
	local base = tonumber(words(L + 32)[0])
	words(base - 8)[0] = link
	kept[#kept + 1] = thread
	-- Fields of the thread itself: base, top, maxstack, stack, cframe, stacksize.
	for _, field in ipairs { 32, 40, 48, 56, 80 } do
		local liar = coroutine.create(sleeper)
		coroutine.resume(liar, 2)
		words(address(liar) + field)[0] = other and link % 2 == 0 and other or link
		kept[#kept + 1] = liar
	end
	other = L
end

-- C frames in a circle.
local frames = ffi.new("uint64_t[512]")
local circle = coroutine.create(sleeper)
coroutine.resume(circle, 2)
local at = tonumber(ffi.cast("uintptr_t", frames))
for i = 0, 511 do
	frames[i] = at + 8 * (i * 37 % 512)
end
words(address(circle) + 80)[0] = at
kept[#kept + 1] = frames
kept[#kept + 1] = circle

local function spin()
	local x = 0
	for i = 1, 2000 do
		x = x + i
	end
	return x
end

io.write("ready\n")
io.flush()
local finish = os.clock() + tonumber(arg[1])
while os.clock() < finish do
	for i = 1, #running do
		running[i](spin)
	end
end
-- To free what lies would not end well.
ffi.cdef("void _exit(int status);")
ffi.C._exit(0)
-- SPDX-License-Identifier: MIT
