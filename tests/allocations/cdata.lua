-- SPDX-License-Identifier: MIT
-- Functions that make C objects and know how large they are: cdata.lua SECONDS
-- Prints a line for each function: its name, and the bytes that it has allocated.
local ffi = require("ffi")
ffi.cdef([[ struct point { double x, y; }; struct pixels { int at[30]; }; ]])

local seconds, sink, number = tonumber(arg[1]), {}, 0
for i = 1, 64 do sink[i] = false end
local point, pixels, array = ffi.typeof("struct point"), ffi.typeof("struct pixels"), ffi.typeof("int[?]")

local function points(i) return point(i, i) end
local function pictures() return pixels() end
local function longs(i) return 10LL + i end
local function arrays(i) return array(i % 32 + 1) end
local function pointers(i) return ffi.cast("struct point *", i) end

local makers = { { "points", points, 4 }, { "pictures", pictures, 1 }, { "longs", longs, 5 }, { "arrays", arrays, 1 },
  { "pointers", pointers, 2 } }

local function round()
  for _, maker in ipairs(makers) do
    local make = maker[2]
    for _ = 1, maker[3] do
      number = number + 1
      sink[number % 64 + 1] = make(number)
    end
  end
end

for _ = 1, 300 do round() end
for _, maker in ipairs(makers) do
  local make, before = maker[2]
  for pass = 1, 2 do -- the first pass is for the compiler
    collectgarbage() collectgarbage("stop")
    before = collectgarbage("count")
    for _ = 1, 3200 do
      number = number + 1
      sink[number % 64 + 1] = make(number)
    end
    maker[4] = (collectgarbage("count") - before) * 1024 / 3200
  end
  collectgarbage("restart")
end

local kept = {}
for i = 1, 5000 do kept[i] = string.rep("b", 1000) .. i end
collectgarbage()

io.stdout:write("ready\n") io.stdout:flush()
local rounds, stop = 0, os.clock() + seconds
while os.clock() < stop do
  for _ = 1, 20 do round() end
  rounds = rounds + 20
end
for _, maker in ipairs(makers) do print(maker[1], maker[4] * maker[3] * rounds) end
print("the end")
