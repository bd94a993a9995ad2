-- SPDX-License-Identifier: MIT
-- client.lua PORT PATH: one request after the other by HTTP/1.0 from this machine, until it is killed; says
-- "ready" after the first answer, and stops with what is wrong if an answer is not "200 OK".
local ffi = require("ffi")
local C = ffi.C

ffi.cdef [[
struct address { uint16_t family, port; uint32_t host; char zero[8]; };
int socket(int, int, int);
int connect(int, const struct address *, int);
long write(int, const char *, size_t);
long read(int, char *, size_t);
int close(int);
]]

local AF_INET, SOCK_STREAM, LOOPBACK = 2, 1, "\127\0\0\1"
local port = tonumber(arg[1])
local request = "GET " .. arg[2] .. " HTTP/1.0\r\n\r\n"
local answer = ffi.new("char[?]", 4096)

local address = ffi.new("struct address", { family = AF_INET })
ffi.copy(ffi.cast("char *", address) + 2, string.char(math.floor(port / 256), port % 256), 2)
ffi.copy(ffi.cast("char *", address) + 4, LOOPBACK, 4)

local count = 0
while true do
	local fd = C.socket(AF_INET, SOCK_STREAM, 0)
	assert(C.connect(fd, address, ffi.sizeof(address)) == 0, "cannot connect")
	C.write(fd, request, #request)
	local text = ""
	repeat
		local length = tonumber(C.read(fd, answer, 4096))
		if length > 0 then text = text .. ffi.string(answer, length) end
	until length <= 0
	C.close(fd)
	assert(text:find("^HTTP/1.1 200 OK"), text)
	count = count + 1
	if count == 1 then print("ready") io.stdout:flush() end
end
