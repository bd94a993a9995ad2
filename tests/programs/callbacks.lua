-- Lua called back from C library functions, nested too.
-- stack: main [string.gsub]! (@replace spin? | [string.upper])?
-- stack: main [string.gsub]! @nested (spin | [string.gsub]! (@replace spin? | [string.upper])?)
-- stack: main [table.sort]! (@descending (spin)?)?
-- stack: main [table.sort]! @lookup (__lt@smaller)? spin
-- stack: main [string.format]! (@text spin)?
-- stack: main [table.foreach] (@visit spin)?
-- stack: main [table.foreachi] (@visit spin)?
-- stack: main [load] (@reader (spin | [table.remove])?)?
local spin, ready = dofile("harness.lua")

local text = ("some words "):rep(5)
local items = {}

local function replace(word) -- @replace
	spin(50)
	return word:upper()
end

local function nested(words) -- @nested
	spin(50)
	return (words:gsub("%w+", replace))
end

local function descending(a, b) -- @descending
	spin(50)
	return a > b
end

local object = setmetatable({}, {
	__lt = function() -- @smaller
		return spin() < 0
	end,
	__tostring = function() -- @text
		spin()
		return "text"
	end,
})

local function lookup(a, b) -- @lookup
	spin(50)
	return object < (a > b and object or object)
end

local function visit() -- @visit
	spin()
end

local finish = ready()
while os.clock() < finish do
	text:gsub("%w+", replace)
	text:gsub("%w+ %w+", nested)
	for i = 1, 20 do
		items[i] = i * 7 % 20
	end
	table.sort(items, descending)
	table.sort(items, lookup)
	string.format("%s %s", object, object)
	table.foreach(items, visit)
	table.foreachi(items, visit)
	local parts = { "return", " 1" }
	load(function() -- @reader
		spin()
		local part = table.remove(parts, 1)
		return part
	end)
end
-- SPDX-License-Identifier: MIT
