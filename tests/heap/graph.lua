-- SPDX-License-Identifier: MIT
-- Makes a random graph of objects and tells what it has made:
--
--   graph.lua SEED COUNT FILE [STATE]
--
-- FILE receives "object ADDRESS KIND BYTES" and "reference ADDRESS HOW NAME WEAK ADDRESS" lines,
-- tab-separated, then "total BYTES". STATE is what the collector then does: stop, or steps to take; or
-- "busy": besides the graph there are 50 MB in strings, and the program changes other objects without end.
-- What an object takes is what collectgarbage("count") grows by; the collector stands still meanwhile.
local seed, count, path, state = tonumber(arg[1]), tonumber(arg[2]), arg[3], arg[4]
local has_ffi, ffi = pcall(require, "ffi")

local random_state = seed
local function random(n)
  random_state = (random_state * 16807) % 2147483647
  return random_state % n + 1
end

local function address(object)
  local text = tostring(object)
  return (text:match("0x(%x+)") or text:match("(%x+)$")):gsub("^0+", "")
end

-- The empty string is no object of the heap.
local empty = { value = "", [""] = true }

-- Names made beforehand: making an object must make no string.
local names = {}
for i = 1, 64 do names[i] = "name" .. i end

local objects = {} -- in the order of making: { object, kind, bytes, references }
local lines = {}

local function bytes()
  return collectgarbage("count") * 1024
end

collectgarbage()
collectgarbage("stop")

local function earlier()
  return #objects > 0 and objects[random(#objects)] or nil
end

local function add(kind, object, size, references)
  objects[#objects + 1] = { object, kind, size, references }
end

local makers = {}
local chars = has_ffi and ffi.typeof("char[?]")

function makers.array()
  local references, n = {}, random(20) - 1
  local values = {}
  for i = 1, n do values[i] = (earlier() or {})[1] or false end
  local before = bytes()
  local made = {}
  for i = 1, n do made[i] = values[i] end
  local after = bytes()
  for i = 1, n do if values[i] then references[#references + 1] = { "index", i, 0, values[i] } end end
  add("table", made, after - before, references)
end

function makers.record()
  local references, keys, values, n = {}, {}, {}, random(12) - 1
  for i = 1, n do
    local which = random(10)
    keys[i] = which == 1 and random(100000) * 1000 or which == 2 and random(100) + 0.5 or which == 3 and (random(2) == 1)
      or names[random(#names)]
    values[i] = (earlier() or {})[1] or 1
  end
  local before = bytes()
  local made = {}
  for i = 1, n do made[keys[i]] = values[i] end
  local after = bytes()
  for key, value in pairs(made) do
    if value ~= 1 then
      local kind = type(key)
      local how = kind == "string" and "field" or kind == "number" and key % 1 == 0 and "index" or "value"
      references[#references + 1] = { how, kind == "number" and string.format("%.14g", key) or tostring(key), 0, value }
    end
  end
  add("table", made, after - before, references)
end

function makers.by_object()
  local key, value = earlier(), earlier()
  if not key then return end
  local before = bytes()
  local made = { [key[1]] = value[1] }
  local after = bytes()
  add("table", made, after - before,
      { { "key", "", 0, key[1] }, { "value", key[2] == "proxy" and "userdata" or key[2], 0, value[1] } })
end

local weak = { k = { __mode = "k" }, v = { __mode = "v" } }
function makers.weak()
  local key, value, mode = earlier(), earlier(), random(2) == 1 and "k" or "v"
  if not key then return end
  local before = bytes()
  local made = setmetatable({ [key[1]] = value[1] }, weak[mode])
  local after = bytes()
  add("table", made, after - before,
      { { "key", "", mode == "k" and 1 or 0, key[1] },
        { "value", key[2] == "proxy" and "userdata" or key[2], mode == "v" and 1 or 0, value[1] },
        { "metatable", "", 0, weak[mode] } })
end

function makers.closure()
  local one, other = earlier(), earlier()
  if not one then return end
  one, other = one[1], other[1]
  local before = bytes()
  local first, second = one, other
  local made = function() return first, second end
  local after = bytes()
  add("function", made, after - before, { { "upvalue", "first", 0, one }, { "upvalue", "second", 0, other } })
end

local function park(rows)
  local kept = rows
  coroutine.yield()
  return kept
end

function makers.coroutine()
  local rows = earlier()
  if not rows then return end
  rows = rows[1]
  local before = bytes()
  local made = coroutine.create(park)
  coroutine.resume(made, rows)
  local after = bytes()
  add("thread", made, after - before, { { "local", "rows", 0, rows }, { "local", "kept", 0, rows } })
end

function makers.proxy()
  local before = bytes()
  local made = newproxy()
  local after = bytes()
  add("userdata", made, after - before, {})
end

function makers.cdata()
  if not has_ffi then return end
  local size, kind = random(300), chars
  local before = bytes()
  local made = kind(size)
  local after = bytes()
  add("cdata", made, after - before, {})
end

-- What is compiled while an object is made would count as its own.
for _, maker in pairs(makers) do jit.off(maker) end
jit.off(park)
jit.off(bytes)

local order = { "array", "record", "array", "record", "by_object", "weak", "closure", "closure", "coroutine", "proxy", "cdata" }
-- Warm up: the first of a kind makes prototypes, traces and buffers besides.
for i = 1, 20 do for _, name in ipairs(order) do makers[name]() end end
local skip = #objects
for i = 1, count do makers[order[random(#order)]]() end

local sum = 0
for i = 1, 1000 do sum = sum + random(i) end -- leaves a trace

local file = assert(io.open(path .. ".new", "w"))
for i = 1, #objects do
  local object, kind, size, references = unpack(objects[i], 1, 4)
  file:write("object\t", address(object), "\t", kind, "\t", i > skip and string.format("%d", size) or "-1", "\n")
  for _, reference in ipairs(references) do
    local how, name, weakly, to = unpack(reference, 1, 4)
    file:write("reference\t", address(object), "\t", how, "\t", tostring(name), "\t", weakly, "\t", address(to), "\n")
  end
end
file:close()
local ballast, changing = {}, {}
if state == "busy" then
  for i = 1, 50 do ballast[i] = string.rep(string.char(64 + i), 1048576) end
elseif state ~= "stop" then
  collectgarbage("restart")
  for i = 1, tonumber(state) do collectgarbage("step", 1) end
  collectgarbage("stop")
end
os.rename(path .. ".new", path)
io.write("ready\n")
io.flush()
local changes = 0
while state == "busy" do
  changes = changes + 1
  changing[changes % 100] = changes
end
io.read()
