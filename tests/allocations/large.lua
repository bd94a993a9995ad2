-- SPDX-License-Identifier: MIT
-- Makes large tables, C arrays and strings beside small objects: large.lua SECONDS
-- Prints how many bytes are in allocations of 64 KiB and more, how many in others, and of the former, in C
-- arrays.
local ffi = require("ffi")
local size_of = dofile((arg[0]:gsub("[^/]+$", "size_of.lua")))
local SLOTS, TVALUE, LARGE_MIN = 32768, 8, 65536
local seconds, number, kept, long = tonumber(arg[1]), 0, {}, ("x"):rep(80000)

local function tables()
  local made = {}
  for i = 1, SLOTS do made[i] = i end
  kept[1] = made
end

local function arrays()
  for i = 1, 4 do kept[2] = ffi.new("char[100000]") end
  kept[3] = ffi.new("char[300000]")
end

local function strings()
  for i = 1, 2 do
    number = number + 1
    kept[4] = long .. number
  end
end

local function small()
  for i = 1, 1500 do
    number = number + 1
    kept[5] = { i, name = "number " .. number }
  end
end

-- The array part doubles: the steps from LARGE_MIN on.
local function large_part()
  local sum, step = 0, SLOTS * TVALUE / 2
  while step >= LARGE_MIN do sum, step = sum + step, step / 2 end
  return sum
end

local of_tables = size_of(tables, 10)
local of_arrays = size_of(arrays, 10)
local large = large_part() + of_arrays + size_of(strings, 10)
local others = of_tables - large_part() + size_of(small, 10)
local alive = {}
for i = 1, 100000 do alive[i] = { i } end
io.stdout:write("ready\n") io.stdout:flush()
local rounds, stop = 0, os.clock() + seconds
while os.clock() < stop do
  tables() arrays() strings() small()
  rounds = rounds + 1
end
print("large", rounds * large)
print("others", rounds * others)
print("arrays", rounds * of_arrays)
print("the end")
