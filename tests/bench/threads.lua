-- So many threads, of which one works: luajit threads.lua COUNT
local ffi = require("ffi")

ffi.cdef([[
int pthread_create(unsigned long *thread, const void *attributes, void *start, void *argument);
int pause(void);
]])
local thread = ffi.new("unsigned long[1]")
for _ = 2, tonumber(arg[1]) do
	assert(ffi.C.pthread_create(thread, nil, ffi.cast("void *", ffi.C.pause), nil) == 0)
end
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
