-- SPDX-License-Identifier: MIT
-- Functions that know what they allocate: makers.lua SECONDS WORK BALLAST
-- WORK: how much arithmetic comes with each call; BALLAST: megabytes that stay alive.
-- Prints a line for each function: its name, and the bytes that it has allocated.
local seconds, work, ballast = tonumber(arg[1]), tonumber(arg[2]), tonumber(arg[3])
local sink, made = {}, {}
for i = 1, 64 do sink[i] = false end
local number = 0

local function empty(i) local t = {} t[1] = i return t end
local function list(i) return { i, 2, 3, 4 } end
local function record(i) return { name = i, size = 2, kind = 3 } end
local function text(i) return "text number " .. i end
local function longer(i) return string.rep("x", 180 + i % 7) .. i end
local function closure(i) return function() return i end end
local function wide(i) return { i, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
  23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40 } end
local function grown(i) local t = {} for k = 1, 9 do t["key" .. k] = i end return t end
local function nothing(i) local sum = 0 for k = 1, 20 do sum = sum + (i * k) % 7 end return sum end

local makers = { { "empty", empty, 4 }, { "list", list, 3 }, { "record", record, 2 }, { "text", text, 6 },
  { "longer", longer, 1 }, { "closure", closure, 4 }, { "wide", wide, 1 }, { "grown", grown, 1 },
  { "nothing", nothing, 10 } }

local function spend(i)
  local x = i
  for _ = 1, work do x = (x * 1103515245 + 12345) % 2147483648 end
  return x
end

local spent = 0
local function round()
  for _, maker in ipairs(makers) do
    local make = maker[2]
    for _ = 1, maker[3] do
      number = number + 1
      sink[number % 64 + 1] = make(number)
      spent = spent + spend(number)
    end
  end
end

for _ = 1, 300 do round() end

-- What one call allocates, with the collector stopped.
for _, maker in ipairs(makers) do
  local make, before = maker[2]
  for pass = 1, 2 do -- the first pass is for the compiler
    collectgarbage() collectgarbage("stop")
    before = collectgarbage("count")
    for _ = 1, 2000 do
      number = number + 1
      sink[number % 64 + 1] = make(number)
    end
    maker[4] = (collectgarbage("count") - before) * 1024 / 2000
  end
  collectgarbage("restart")
end

local kept = {}
for i = 1, ballast * 1024 do kept[i] = string.rep("b", 1000) .. i end
collectgarbage()

io.stdout:write("ready\n") io.stdout:flush()
local rounds, stop = 0, os.clock() + seconds
while os.clock() < stop do
  for _ = 1, 20 do round() end
  rounds = rounds + 20
end
for _, maker in ipairs(makers) do print(maker[1], maker[4] * maker[3] * rounds) end
print("the end")
