-- SPDX-License-Identifier: MIT
-- A large cache of which little changes: busy_cache.lua MEGABYTES. It prints "ready" when it is full.
local most = tonumber(arg[1]) * 1024
local cache, entries = {}, 0
while collectgarbage("count") < most do
  entries = entries + 1
  cache[entries] = { id = entries, name = "name" .. entries, body = { entries } }
end
print("ready")
io.stdout:flush()
local count = 0
while true do
  count = count + 1
  cache[count % 1000 + 1].id = count
end
