-- SPDX-License-Identifier: MIT
-- A cache without a bound: each request adds an entry under a key of its own.
local ffi = require("ffi")
ffi.cdef("int poll(void *fds, unsigned long count, int timeout_ms);")

local answers = {} -- fault
local function answer(request)
	answers[request] = answers[request] or { body = string.rep("x", 2000) .. request }
	return answers[request]
end

package.loaded["my.answers"] = { answer = answer }
print("ready")
io.stdout:flush()
local n = 0
while true do
	for _ = 1, 5 do
		n = n + 1
		answer("user:" .. n)
	end
	ffi.C.poll(nil, 0, 10)
end
