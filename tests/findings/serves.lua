-- SPDX-License-Identifier: MIT
-- Without fault: a server that sleeps, and answers now and then.
local ffi = require("ffi")
ffi.cdef([[
int epoll_create1(int flags);
int epoll_wait(int fd, void *events, int most, int timeout_ms);
]])

local events = ffi.new("char[64]")
local epoll = ffi.C.epoll_create1(0)

print("ready")
io.stdout:flush()
local answered = 0
while true do
	ffi.C.epoll_wait(epoll, events, 1, 50)
	answered = answered + 1
end
