-- Something of everything that a layout describes, then asleep in a C function.

local function leaf(n)
  local sum = 0
  for i = 1, n do
    if i % 3 == 0 then sum = sum + i elseif i % 7 == 1 then sum = sum - 1 end
  end
  return sum
end

local function recurse(depth)
  if depth == 0 then return 1 end
  return recurse(depth - 1) + 1
end

local proxy = setmetatable({}, { __index = function(_, key) return key end })
local names, list = {}, { 1, 2, 3, 4 }

for i = 1, 300 do
  leaf(100)
  recurse(20)
  names["k" .. i % 50] = i
  list[i] = proxy[i]
  for _, value in pairs(names) do list[1] = list[1] + value end
end

local co = coroutine.wrap(function() while true do coroutine.yield(1) end end)
co()

io.write("ready\n")
io.flush()
pcall(require, "ffi")
local kept = { leaf, recurse, proxy, names, list, co }
while io.read() do end
return kept
-- SPDX-License-Identifier: MIT
