-- report.lua LINES [TIMES]: which routes of a made-up access log are slow, as a page of text.
local lines, times = tonumber(arg[1]), tonumber(arg[2] or 1)

local function read_log()
	local log = {}
	for i = 1, lines do
		log[i] = ("10.0.0.%d GET /api/v%d/items/%d 200 %d"):format(i % 250, i % 3, i % 977, i % 701)
	end
	return log
end

local function route_of(path)
	return (path:gsub("%d+", "*"))
end

local function count(log)
	local routes = {}
	for _, line in ipairs(log) do
		local path, ms = line:match("GET (%S+) %d+ (%d+)")
		local route = route_of(path)
		local seen = routes[route] or { count = 0, ms = 0 }
		routes[route] = seen
		seen.count, seen.ms = seen.count + 1, seen.ms + tonumber(ms)
	end
	return routes
end

local function slowest(log, least)
	local found = {}
	for i = 1, #log do
		local is_slow = function(ms)
			return ms >= least
		end
		if is_slow(tonumber(log[i]:match("%d+$"))) then
			found[#found + 1] = log[i]
		end
	end
	return found
end

local function render(routes, found)
	local page = ""
	for route, seen in pairs(routes) do
		page = page .. route .. " " .. seen.count .. " " .. seen.ms / seen.count .. "\n"
	end
	for _, line in ipairs(found) do
		page = page .. line .. "\n"
	end
	return page
end

local log = read_log()
local page
for _ = 1, times do
	page = render(count(log), slowest(log, 600))
end
io.write(#page, " bytes\n")
-- SPDX-License-Identifier: MIT
