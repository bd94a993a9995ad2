-- Does a bit of everything, over and over: what the fuzz targets' images are moments of.
--
--	luajit seeds.lua on|off
if arg[1] == "off" then jit.off() else jit.opt.start("hotloop=5", "hotexit=3") end

local Point = {}
Point.__index = Point
function Point.__add(a, b) return setmetatable({ x = a.x + b.x, y = a.y + b.y }, Point) end
function Point:length() return math.sqrt(self.x * self.x + self.y * self.y) end

local function sum(n, ...)
	local total = select("#", ...)
	for i = 1, n do total = total + i % 7 end
	return total
end

local function deep(n, work)
	if n == 0 then return work() end
	return 1 + deep(n - 1, work)
end

local function protected(work)
	return select(2, pcall(function() return work() end))
end

local waiting = {}
local function job(name)
	local count = 0
	while true do
		count = count + sum(20)
		coroutine.yield(name .. count)
	end
end
for i = 1, 4 do waiting[i] = coroutine.wrap(job) waiting[i]("job" .. i) end

local function points()
	local at = setmetatable({ x = 1, y = 2 }, Point)
	for _ = 1, 20 do at = at + at end
	return at:length()
end

local function texts()
	return (("a;b\n<c>"):gsub("%w", function(letter) return letter .. sum(10, 1, 2) end))
end

local function sorted()
	local list = { 5, 3, 9, 1, 7 }
	table.sort(list, function(a, b) return sum(5) + a < b + sum(5) end)
	return list[1]
end

local rounds = { points, texts, sorted, function() return deep(20, points) end,
	function() return protected(texts) end, function() return protected(error) end,
	function() for i = 1, #waiting do waiting[i]() end return 1 end,
	coroutine.wrap(function() while true do coroutine.yield(deep(5, sorted)) end end) }

while true do
	for i = 1, #rounds do rounds[i]() end
end
-- SPDX-License-Identifier: MIT
