-- SPDX-License-Identifier: MIT
-- Sixty handlers that count and look up in a dictionary of C structures, as gateways do with
-- lua_shared_dict: FFI, strings, pcall() and code that is hot everywhere at once.
local ffi = require("ffi")
ffi.cdef("struct entry { int length; char key[32]; double value; };")

local HANDLERS, TURNS = 60, 10000
local dictionary = {}

local function set(key, value)
	local entry = dictionary[key]
	if not entry then
		entry = ffi.new("struct entry")
		dictionary[key] = entry
	end
	entry.length = math.min(#key, 31)
	ffi.copy(entry.key, key, entry.length)
	entry.value = value
end

local function get(key)
	local entry = dictionary[key]
	if entry then
		return entry.value, ffi.string(entry.key, entry.length)
	end
end

local function increase(key)
	local value = get(key) or 0
	set(key, value + 1)
	return value
end

local SOURCE = [[
	local get, set, increase = ...
	return function(turn)
		local key = "key:%d:" .. turn %% %d
		local count = increase(key)
		if count %% %d == 0 then
			set(key .. ":some", count)
		end
		local value, name = get(key)
		local words = {}
		for word in name:gmatch("[^:]+") do
			words[#words + 1] = word
		end
		return table.concat(words, "-") .. tostring(value)
	end
]]

local handlers = {}
for i = 1, HANDLERS do
	handlers[i] = assert(loadstring(SOURCE:format(i, i + 10, i % 7 + 2), "=handler_" .. i))(get, set, increase)
end
local turn = 0
while true do
	for i = 1, HANDLERS do
		turn = turn + 1
		assert(pcall(handlers[i], turn))
	end
	if turn % (HANDLERS * TURNS) == 0 then
		dictionary = {}
	end
end
