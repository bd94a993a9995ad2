-- Spins beside so many coroutines that have yielded: it takes a while to dump them.
local kept = {}
for i = 1, tonumber(arg[1]) do
	kept[i] = coroutine.create(function() coroutine.yield() end)
	coroutine.resume(kept[i])
end
io.write("ready\n")
io.flush()
local sum = 0
while true do sum = sum + #kept end
-- SPDX-License-Identifier: MIT
