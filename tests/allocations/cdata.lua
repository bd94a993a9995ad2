-- SPDX-License-Identifier: MIT
-- Functions that make C objects and know how large they are: cdata.lua SECONDS
local ffi = require("ffi")
ffi.cdef([[ struct point { double x, y; }; struct pixels { int at[30]; }; ]])

local point, pixels, array = ffi.typeof("struct point"), ffi.typeof("struct pixels"), ffi.typeof("int[?]")

local function points(i) return point(i, i) end
local function pictures() return pixels() end
local function longs(i) return 10LL + i end
local function arrays(i) return array(i % 32 + 1) end
local function pointers(i) return ffi.cast("struct point *", i) end

local makers = { { "points", points, 4 }, { "pictures", pictures, 1 }, { "longs", longs, 5 }, { "arrays", arrays, 1 },
  { "pointers", pointers, 2 } }

local run_rounds = dofile(arg[0]:match(".*/") .. "rounds.lua")
run_rounds(makers, tonumber(arg[1]), 5000)
