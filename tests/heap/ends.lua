-- SPDX-License-Identifier: MIT
-- ends.lua HOW SECONDS: a heap of 20 MB that changes for so much CPU time, until its process ends: by "exit", or
-- by "exec" of another program.
local how, seconds = arg[1], tonumber(arg[2])
local ffi = require("ffi")
ffi.cdef("int execv(const char *path, char *const *arguments);")
local words = { ffi.new("char[6]", "sleep"), ffi.new("char[3]", "30") }
local arguments = ffi.new("char *[3]", { words[1], words[2], nil })
local held = {}
for i = 1, 20 do held[i] = string.rep("x", 1048576) .. i end
print("ready")
io.stdout:flush()
local at, count = os.clock() + seconds, 0
while os.clock() < at do
  count = count + 1
  held[20 + count % 1000] = { count }
end
if how == "exec" then ffi.C.execv("/bin/sleep", arguments) end
