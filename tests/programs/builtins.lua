-- Library functions in C are leaves, under the library's name however they are
-- called.
-- stack: main strings@strings! ([string.rep]! | [string.gsub]! | [string.find]! | [string.format]! | [string.byte]! | [string.char]! | [string.reverse]! | [tostring]! | [tonumber]!)?
-- stack: main tables@tables! ([table.concat]! | [table.sort]! | [table.insert]! | [table.remove]!)?
-- stack: main [table.concat]!
-- stack: main maths@maths! ([math.sin]! | [math.cos]! | [math.exp]! | [math.log]! | [math.pow]! | [math.fmod]! | [math.floor]! | [math.max]! | [math.random]!)?
-- stack: main operators@operators!
-- stack: main renamed@renamed! ([string.rep]! | [math.sin]!)?
local _, ready = dofile("harness.lua")

local text = ("the quick brown fox "):rep(20)

local function strings() -- @strings
	local all = text:rep(10)
	all = all:gsub("quick", "slow"):reverse()
	local at = all:find("nothing like it")
	return string.format("%s %d %5.2f", at, all:byte(10), 1.5) .. string.char(65, 66) .. tostring(tonumber("12") + 0.5)
end

local function tables() -- @tables
	local list = {}
	for i = 1, 100 do
		table.insert(list, i * 7 % 100)
	end
	table.sort(list)
	table.remove(list, 1)
	return table.concat(list, ",")
end

local function maths() -- @maths
	local sum = 0
	for i = 1, 100 do
		sum = sum + math.sin(i) + math.cos(i) + math.exp(i / 100) + math.log(i)
		sum = sum + math.pow(i, 0.5) + math.fmod(i, 3) + math.floor(sum) + math.max(i, sum) + math.random()
		sum = sum % 1000
	end
	return sum
end

-- Instructions which call C functions without a frame.
local function operators() -- @operators
	local sum, list = 0, { 1, 2, 3 }
	for i = 1, 100 do
		sum = sum + i ^ 0.3 + #list + i % 3
		list[#list + 1] = "item" .. i
		list["key" .. i] = i
	end
	return sum
end

local repeated, sine = string.rep, math.sin

local function renamed() -- @renamed
	local sum = 0
	for i = 1, 100 do
		sum = sum + #repeated("x", i) + sine(i)
	end
	return sum
end

local finish = ready()
while os.clock() < finish do
	strings()
	tables()
	maths()
	operators()
	renamed()
end
-- SPDX-License-Identifier: MIT
