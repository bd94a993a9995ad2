-- SPDX-License-Identifier: MIT
-- An event loop that starts a program and waits for its end: all other events wait, too.
local ffi = require("ffi")
ffi.cdef([[
int epoll_create1(int flags);
int epoll_wait(int fd, void *events, int most, int timeout_ms);
]])

local events = ffi.new("char[64]")
local epoll = ffi.C.epoll_create1(0)

local function log(text)
	os.execute("sleep 0.1; : " .. text) -- fault
end

print("ready")
io.stdout:flush()
while true do
	ffi.C.epoll_wait(epoll, events, 1, 20)
	log("event")
end
