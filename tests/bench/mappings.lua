-- So many mappings more: luajit mappings.lua COUNT; or a chunk that returns the function that makes them.
local ffi = require("ffi")

ffi.cdef("void *mmap(void *address, size_t length, int protection, int flags, int fd, long offset);")

local function map(count)
	for i = 1, count do
		-- Neighbours that are protected alike would become one.
		local protection, private_anonymous = 1 + 2 * (i % 2), 0x22
		assert(ffi.cast("intptr_t", ffi.C.mmap(nil, 4096, protection, private_anonymous, -1, 0)) ~= -1)
	end
end

if not arg then
	return map
end
map(tonumber(arg[1]))
jit.off()
io.write("ready\n")
io.flush()
while true do
	local sum = 0
	for i = 1, 1e5 do
		sum = sum + i % 7
	end
end
-- SPDX-License-Identifier: MIT
