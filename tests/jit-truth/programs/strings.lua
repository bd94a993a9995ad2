-- Strings built piece by piece: concatenation, conversions, string functions.
local format, rep, char, concat = string.format, string.rep, string.char, table.concat

local function pad(text, width)
	while #text < width do
		text = text .. " "
	end
	return text
end

local function quote(text)
	return '"' .. text .. '"'
end

local function field(name, value)
	return quote(name) .. ":" .. value
end

local function letters(n)
	local parts = {}
	for i = 1, n do
		parts[i] = char(97 + i % 26)
	end
	return concat(parts)
end

local function record(i)
	local line = field("id", i) .. "," .. field("name", pad("n" .. i % 100, 8))
	line = line .. "," .. field("word", letters(i % 10 + 1))
	return "{" .. line .. "}"
end

local function document(n)
	local lines = {}
	for i = 1, n do
		lines[#lines + 1] = record(i)
	end
	return concat(lines, "\n")
end

local finish = os.clock() + tonumber(arg[1] or 1)
local size = 0
while os.clock() < finish do
	size = size + #document(500)
end
-- SPDX-License-Identifier: MIT
