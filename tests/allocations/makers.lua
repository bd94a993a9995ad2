-- SPDX-License-Identifier: MIT
-- Functions that know what they allocate: makers.lua SECONDS WORK BALLAST
-- WORK: how much arithmetic comes with each call; BALLAST: megabytes that stay alive.
local seconds, work, ballast = tonumber(arg[1]), tonumber(arg[2]), tonumber(arg[3])

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

local run_rounds = dofile(arg[0]:match(".*/") .. "rounds.lua")
run_rounds(makers, seconds, ballast * 1024, spend)
