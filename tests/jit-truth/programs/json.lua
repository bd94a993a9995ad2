-- A JSON decoder: strings, branches, recursion, tables.
local byte, sub, find = string.byte, string.sub, string.find

local decode_value

local function skip(text, at)
	local c = byte(text, at)
	while c == 32 or c == 10 or c == 9 do
		at = at + 1
		c = byte(text, at)
	end
	return at
end

local function decode_string(text, at)
	local from = at + 1
	local i = from
	while true do
		local c = byte(text, i)
		if c == 34 then
			return sub(text, from, i - 1), i + 1
		elseif c == 92 then
			i = i + 1
		elseif not c then
			error("unfinished string")
		end
		i = i + 1
	end
end

local function decode_number(text, at)
	local sign, value = 1, 0
	local c = byte(text, at)
	if c == 45 then
		sign = -1
		at = at + 1
		c = byte(text, at)
	end
	while c and c >= 48 and c <= 57 do
		value = value * 10 + (c - 48)
		at = at + 1
		c = byte(text, at)
	end
	if c == 46 then
		local scale = 0.1
		at = at + 1
		c = byte(text, at)
		while c and c >= 48 and c <= 57 do
			value = value + (c - 48) * scale
			scale = scale * 0.1
			at = at + 1
			c = byte(text, at)
		end
	end
	return sign * value, at
end

local function decode_array(text, at)
	local array, n = {}, 0
	at = skip(text, at + 1)
	if byte(text, at) == 93 then
		return array, at + 1
	end
	while true do
		local value
		value, at = decode_value(text, at)
		n = n + 1
		array[n] = value
		at = skip(text, at)
		local c = byte(text, at)
		if c == 93 then
			return array, at + 1
		end
		at = skip(text, at + 1)
	end
end

local function decode_object(text, at)
	local object = {}
	at = skip(text, at + 1)
	if byte(text, at) == 125 then
		return object, at + 1
	end
	while true do
		local key, value
		key, at = decode_string(text, at)
		at = skip(text, at)
		value, at = decode_value(text, skip(text, at + 1))
		object[key] = value
		at = skip(text, at)
		if byte(text, at) == 125 then
			return object, at + 1
		end
		at = skip(text, at + 1)
	end
end

function decode_value(text, at)
	local c = byte(text, at)
	if c == 123 then
		return decode_object(text, at)
	elseif c == 91 then
		return decode_array(text, at)
	elseif c == 34 then
		return decode_string(text, at)
	elseif c == 116 then
		return true, at + 4
	elseif c == 102 then
		return false, at + 5
	elseif c == 110 then
		return nil, at + 4
	end
	return decode_number(text, at)
end

local parts = {}
for i = 1, 50 do
	parts[i] = string.format('{"id": %d, "name": "item %d", "tags": ["a", "bc", "d%d"], "price": %d.%d, "ok": %s}',
		i, i, i, i * 3, i % 10, i % 2 == 0 and "true" or "false")
end
local text = "[" .. table.concat(parts, ", ") .. "]"

local finish = os.clock() + tonumber(arg[1] or 1)
while os.clock() < finish do
	for _ = 1, 20 do
		decode_value(text, 1)
	end
end
-- SPDX-License-Identifier: MIT
