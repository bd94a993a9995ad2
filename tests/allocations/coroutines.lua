-- SPDX-License-Identifier: MIT
-- Makes coroutines beside tables with hash parts as large as their stacks, few large strings, and lists in two
-- coroutines that take turns: coroutines.lua SECONDS
local count, long = 0, ("x"):rep(90000)
local names = {}
for i = 1, 16 do names[i] = "name " .. i end

local function spawned() local made = coroutine.create(print) return made end
local function keyed(i) local t = {} for k = 1, 16 do t[names[k]] = i end return t end
local function often(i) while true do i = coroutine.yield({ i, 2, 3, 4 }) end end
local function seldom(i) while true do i = coroutine.yield({ i, 2, 3, 4 }) end end
local function large(i)
  count = count + 1
  if count % 100 ~= 0 then return i end
  return long .. i
end

local makers = { { "spawned", spawned, 2 }, { "keyed", keyed, 4 }, { "large", large, 1 }, { "often", coroutine.wrap(often), 15 },
  { "seldom", coroutine.wrap(seldom), 5 } }

local run_rounds = dofile(arg[0]:match(".*/") .. "rounds.lua")
run_rounds(makers, tonumber(arg[1]), 10000)
