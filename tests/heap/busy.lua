-- SPDX-License-Identifier: MIT
-- Makes and drops objects of every kind without end: tables are resized, strings interned,
-- stacks grown, and the collector is always at work.
local held, count = {}, 0

local function grow(n)
  return n == 0 and {} or { grow(n - 1), n }
end

local function step()
  count = count + 1
  local slot = count % 2000 + 1
  held[slot] = { name = "name" .. count, [count * 1000] = slot, call = function() return slot end }
  if count % 50 == 0 then held["key" .. count % 5000] = coroutine.wrap(function() grow(100) coroutine.yield() end) end
  if count % 50 == 25 then held["key" .. count % 5000] = nil end
  if count % 7 == 0 then
    local wide = {}
    for i = 1, count % 300 do wide[i] = { i } end
    held[slot].wide = wide
  end
end

for _ = 1, 2000 do step() end
print("ready")
io.stdout:flush()
while true do step() end
