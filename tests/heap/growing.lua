-- SPDX-License-Identifier: MIT
-- A cache that grows at full speed:
--
--	growing.lua MEGABYTES [JIT]
--
-- "ready" is printed when it is under way. At so many megabytes it begins anew: a machine has only so much.
local most = tonumber(arg[1]) * 1024
local count = 0

local function grow(cache)
  for i = 1, 1000 do
    count = count + 1
    cache[#cache + 1] = { name = "name" .. count, body = { count } }
  end
end

local cache = {}
while true do
  grow(cache)
  if count == 20000 then
    print("ready")
    io.stdout:flush()
  end
  if collectgarbage("count") > most then
    cache = {}
    collectgarbage()
  end
end
