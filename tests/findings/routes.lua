-- SPDX-License-Identifier: MIT
-- Without fault: a gateway's handlers, each with a fair share of the time, in pieces between sleeps.
local ffi = require("ffi")
ffi.cdef([[
int epoll_create1(int flags);
int epoll_wait(int fd, void *events, int most, int timeout_ms);
]])

local events = ffi.new("char[64]")
local epoll = ffi.C.epoll_create1(0)
local routes = {}
for i = 1, 40 do
	routes["/v1/thing" .. i] = { upstream = "10.0.0." .. i, weight = i % 5 + 1 }
end
local recent, slot = {}, 0

local function parse(line)
	local method, path, query = line:match("^(%u+) ([^ ?]+)%??(%S*)")
	local arguments = {}
	for key, value in query:gmatch("([^&=]+)=([^&]*)") do
		arguments[key] = value
	end
	return method, path, arguments
end

local function sign(path, arguments)
	local hash = 5381
	for i = 1, #path do
		hash = (hash * 33 + path:byte(i)) % 4294967296
	end
	for key, value in pairs(arguments) do
		hash = (hash + #key * 7 + #value) % 4294967296
	end
	return hash
end

local function balance(route, hash)
	local best, least = 1, math.huge
	for i = 1, 60 do
		local load = (hash * i) % 97 / route.weight
		if load < least then
			best, least = i, load
		end
	end
	return best
end

local function answer(method, path, peer)
	local parts = { "HTTP/1.1 200 OK", "X-Method: " .. method, "X-Path: " .. path, "X-Peer: " .. peer }
	return table.concat(parts, "\r\n")
end

local function handle(n)
	local method, path, arguments = parse("GET /v1/thing" .. n % 40 + 1 .. "?user=" .. n % 100 .. "&page=3 HTTP/1.1")
	local hash = sign(path, arguments)
	local peer = balance(routes[path], hash)
	slot = slot % 1000 + 1
	recent[slot] = answer(method, path, peer)
end

print("ready")
io.stdout:flush()
local n = 0
while true do
	ffi.C.epoll_wait(epoll, events, 1, 1)
	for _ = 1, 100 do
		n = n + 1
		handle(n)
	end
end
