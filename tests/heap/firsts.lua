-- SPDX-License-Identifier: MIT
-- Coroutines whose first function runs, has not begun, has made a tail call, or is in C.
local function wait(value)
  while true do
    coroutine.yield(value)
  end
end

local function serve()
  wait({})
  return 1
end

local function hand_on()
  coroutine.yield()
  return wait({})
end

local served, handed, protected = {}, {}, {}
for i = 1, 100 do
  served[i] = coroutine.create(serve)
  handed[i] = coroutine.create(hand_on)
  protected[i] = coroutine.create(pcall)
  if i > 50 then
    coroutine.resume(served[i])
    coroutine.resume(handed[i])
    coroutine.resume(handed[i])
    coroutine.resume(protected[i], wait, {})
  end
end
io.write("ready\n")
io.flush()
io.read()
