-- SPDX-License-Identifier: MIT
-- Makes strings and keeps them in a table that grows to megabytes, again and again: strings.lua SECONDS
-- Prints what the strings have taken, and what the tables have grown by.
local COUNT, SLOTS, TVALUE = 200000, 262144, 8
local seconds, number = tonumber(arg[1]), 0

local function fill()
  local kept = {}
  for i = 1, COUNT do
    number = number + 1
    kept[i] = string.format("%012d", number)
  end
end

local function size_of_a_string()
  local kept = {}
  for i = 1, 1000 do kept[i] = false end
  collectgarbage() collectgarbage("stop")
  local before = collectgarbage("count")
  for i = 1, 1000 do kept[i] = string.format("string %05d", i) end
  local size = (collectgarbage("count") - before) * 1024 / 1000
  collectgarbage("restart")
  return size
end

fill()
number = 0
local size = size_of_a_string()
io.stdout:write("ready\n") io.stdout:flush()
local rounds, stop = 0, os.clock() + seconds
while os.clock() < stop do
  fill()
  rounds = rounds + 1
end
print("strings", rounds * COUNT * size)
print("tables", rounds * SLOTS * TVALUE)
print("the end")
