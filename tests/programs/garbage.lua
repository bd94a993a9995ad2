-- The collector works inside whichever function allocates.
-- stack: main closures@closures!
-- stack: main tables@tables!
-- stack: main joins@joins! ([tostring]! | [table.concat]! | [string.sub]!)?
-- stack: main [table.concat]!
-- stack: main [collectgarbage]!
local _, ready = dofile("harness.lua")

local keep = {}

local function closures() -- @closures
	for i = 1, 100 do
		keep[i] = function() -- @closure
			return i
		end
	end
end

local function tables() -- @tables
	for i = 1, 100 do
		keep[i] = { i, { key = i } }
	end
end

local function joins() -- @joins
	local text = ""
	for i = 1, 50 do
		text = text .. tostring(i) .. text:sub(1, 5)
	end
	return table.concat({ text, text })
end

local finish = ready()
while os.clock() < finish do
	closures()
	tables()
	joins()
	collectgarbage("step")
end
-- SPDX-License-Identifier: MIT
