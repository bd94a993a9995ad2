-- SPDX-License-Identifier: MIT
-- Makes coroutines whose stacks grow twice, which is most of what they have, beside strings, and tables that
-- were made long before their hash parts grow so fast that films see hardly any step alone: stacks.lua SECONDS
local TABLES = 4096 -- more than are made in a window

local names, tables = {}, {}
for i = 1, 16 do names[i] = "name " .. i end
for i = 1, TABLES do tables[i] = {} end

local function deep(depth) if depth == 0 then return 0 end return 1 + deep(depth - 1) end
local function grown() return coroutine.wrap(deep)(40) end
local function keyed(i)
  local slot = i % TABLES + 1
  local t = tables[slot]
  tables[slot] = {}
  for k = 1, 16 do t[names[k]] = i end
  return t
end
local function texts(i) return "text " .. i end

local makers = { { "grown", grown, 2 }, { "keyed", keyed, 20 }, { "texts", texts, 20 } }

local run_rounds = dofile(arg[0]:match(".*/") .. "rounds.lua")
run_rounds(makers, tonumber(arg[1]), 10000)
