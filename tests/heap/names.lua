-- SPDX-License-Identifier: MIT
-- A function with a cache, which a module holds by two names. With each line that is read, older and new
-- tables and a coroutine hold it by other names, and the module gets a key.
local clients, handlers = {}, {}

local function make()
  local app, cache = {}, {}

  function app.lookup(key)
    cache[key] = cache[key] or { key }
    return cache[key]
  end
  app.search = app.lookup
  return app
end

local app, list, threads = make(), {}, {}
package.loaded.app = app

local number = 0
repeat
  number = number + 1
  for i = 1, 1000 do
    app.lookup(number * 1000 + i)
  end
  app["option_" .. number] = number
  clients["client " .. number] = app.lookup
  handlers["at_" .. number] = app.lookup
  list[number] = { ["on_" .. number] = app.lookup }
  threads[number] = coroutine.create(function(callback)
    coroutine.yield()
    return callback
  end)
  coroutine.resume(threads[number], app.lookup)
  io.write("ready\n")
  io.flush()
until not io.read()
