-- SPDX-License-Identifier: MIT
-- A leak in a function that runs all the time:
--
--	running.lua loop|called|coroutine|builtins|resumer|waits
--
-- "ready" is printed when it is under way.
local sum = 0

local function work(count)
  for i = 1, count do
    sum = sum + i % 7
  end
end

local function ready(count)
  if count == 100 then
    print("ready")
    io.stdout:flush()
  end
end

local function add(cache, value)
  cache[#cache + 1] = { value }
  work(20000)
end

local function loop()
  local cache = {}
  for i = 1, 1e9 do
    cache[#cache + 1] = { i }
    for k = 1, 20000 do
      sum = sum + k % 7
    end
    ready(#cache)
  end
end

local function called()
  local cache = {}
  for i = 1, 1e9 do
    add(cache, i)
    ready(#cache)
  end
end

local function builtins()
  local cache = {}
  for i = 1, 1e9 do
    ("ab"):gsub(".", function(letter)
      add(cache, letter .. i)
      return letter
    end)
    table.sort({ 3, 1, 2, i }, function(a, b)
      return a < b
    end)
    ready(#cache / 2)
  end
end

local function leak()
  local cache = {}
  for i = 1, 1e9 do
    add(cache, i)
    ready(#cache)
    if i % 10 == 0 then
      coroutine.yield()
    end
  end
end

local ways = { loop = loop, called = called, builtins = builtins }

function ways.coroutine()
  local resume = coroutine.wrap(leak)
  while true do
    resume()
  end
end

-- A coroutine that has resumed the running one does not wait.
local function resumer()
  local cache = {}
  coroutine.wrap(function()
    for i = 1, 1e9 do
      add(cache, i)
      ready(#cache)
    end
  end)()
  return cache
end

function ways.resumer()
  coroutine.wrap(resumer)()
end

-- Runs, or waits at one of two lines.
local function wait(cache)
  add(cache, "first")
  coroutine.yield()
  add(cache, "second")
  coroutine.yield()
end

local function waits()
  local cache = {}
  while true do
    wait(cache)
    ready(#cache)
  end
end

function ways.waits()
  local resume = coroutine.wrap(waits)
  while true do
    resume()
    work(40000)
  end
end

ways[arg[1]]()
