-- SPDX-License-Identifier: MIT
-- Makes coroutines whose stacks grow once or twice, which is most of what they have, beside tables that grow, strings and
-- closures: stacks.lua SECONDS
local names = {}
for i = 1, 16 do names[i] = "name " .. i end

local function deep(depth) if depth == 0 then return 0 end return 1 + deep(depth - 1) end
local function grown(i) return coroutine.wrap(deep)(i % 2 == 0 and 25 or 40) end
local function pairs_of(i) return { i, i + 1, { i } } end
local function keyed(i) local t = {} for k = 1, 16 do t[names[k]] = i end return t end
local function listed(i) local t = {} for k = 1, 20 do t[k] = i end return t end
local function texts(i) return "text " .. i end
local function closures(i) return function() return i end end

local makers = { { "grown", grown, 2 }, { "pairs_of", pairs_of, 20 }, { "keyed", keyed, 4 }, { "listed", listed, 5 },
  { "texts", texts, 20 }, { "closures", closures, 10 } }

local run_rounds = dofile(arg[0]:match(".*/") .. "rounds.lua")
run_rounds(makers, tonumber(arg[1]), 10000)
