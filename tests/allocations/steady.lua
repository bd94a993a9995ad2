-- SPDX-License-Identifier: MIT
-- A function that knows what it allocates, of which as much is alive at the end of each cycle: steady.lua SECONDS
local function lists(i) return { i, 2, 3 } end

local function spend(i)
  local x = i
  for _ = 1, 20 do x = (x * 1103515245 + 12345) % 2147483648 end
  return x
end

local run_rounds = dofile(arg[0]:match(".*/") .. "rounds.lua")
run_rounds({ { "lists", lists, 1 } }, tonumber(arg[1]), 0, spend)
