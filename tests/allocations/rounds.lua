-- SPDX-License-Identifier: MIT
-- Runs functions that allocate, for a time. Prints a line for each: its name, and the bytes that it has allocated.
-- makers: of each its name, the function, which gets a number, and how often it is called in a round; kept: strings of
-- 1 KB that stay alive; spend: called with the number after each call, if there is one.
local CALLS = 3200 -- to measure one

return function(makers, seconds, kept, spend)
  local sink, number, spent, strings = {}, 0, 0, {}
  for i = 1, 64 do sink[i] = false end
  spend = spend or function() return 0 end

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

  -- What one call allocates, with the collector stopped: in the pass with least, as code is compiled in others,
  -- and the table of strings grows.
  for _, maker in ipairs(makers) do
    local make = maker[2]
    maker[4] = math.huge
    collectgarbage() collectgarbage("stop")
    for pass = 1, 4 do
      local before = collectgarbage("count")
      for _ = 1, CALLS do
        number = number + 1
        sink[number % 64 + 1] = make(number)
      end
      maker[4] = math.min(maker[4], (collectgarbage("count") - before) * 1024 / CALLS)
    end
    collectgarbage("restart")
  end

  for i = 1, kept do strings[i] = string.rep("b", 1000) .. i end
  collectgarbage()

  io.stdout:write("ready\n") io.stdout:flush()
  local rounds, stop = 0, os.clock() + seconds
  while os.clock() < stop do
    for _ = 1, 20 do round() end
    rounds = rounds + 20
  end
  for _, maker in ipairs(makers) do print(maker[1], maker[4] * maker[3] * rounds) end
  print("the end")
end
