-- SPDX-License-Identifier: MIT
-- Grows tables made earlier in small steps, beside few large strings: steps.lua SECONDS
-- Prints how many bytes are in allocations of 64 KiB and more, and how many in others.
local size_of = dofile((arg[0]:gsub("[^/]+$", "size_of.lua")))
local TABLES, SLOTS = 1000, 2000
local seconds, number, kept, long = tonumber(arg[1]), 0, nil, ("x"):rep(100000)

-- No new object is among what the steps allocate: only that there is so much of it can be seen.
local function others()
  local made = {}
  for i = 1, TABLES do made[i] = {} end
  for i = 1, TABLES do
    local grown = made[i]
    for k = 1, SLOTS do grown[k] = k end
    made[i] = false
  end
end

local function large()
  for i = 1, 10 do
    number = number + 1
    kept = long .. number
  end
end

local of_others, of_large = size_of(others, 5), size_of(large, 5)
collectgarbage()
local alive = {}
for i = 1, 100000 do alive[i] = { i } end
io.stdout:write("ready\n") io.stdout:flush()
local rounds, stop = 0, os.clock() + seconds
while os.clock() < stop do
  others() large()
  rounds = rounds + 1
end
print("large", rounds * of_large)
print("others", rounds * of_others)
print("the end")
