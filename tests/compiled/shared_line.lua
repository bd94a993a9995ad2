-- shared_line.lua: two functions on one line. The first runs at the start only, and LuaJIT gives its loop
-- up. The second is switched off and takes the time. Says "ready" between the two.
local cold, hot = function(n) local f for i = 1, n do f = function() return i end end return f end, function(n) local s = 0 for i = 1, n do s = (s * 3 + i) % 1000003 end return s end
for _ = 1, 20000 do cold(100) end
jit.off(hot)
print("ready")
io.stdout:flush()
while true do
	hot(1000)
end
-- SPDX-License-Identifier: MIT
