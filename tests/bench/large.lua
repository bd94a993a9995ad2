-- Works in a function of a library with much debug info: luajit large.lua LIBRARY
local ffi = require("ffi")

ffi.cdef("void large_spin(unsigned long count);")
local library = ffi.load(arg[1])
while true do
	library.large_spin(100000)
end
-- SPDX-License-Identifier: MIT
