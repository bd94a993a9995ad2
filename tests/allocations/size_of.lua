-- SPDX-License-Identifier: MIT
-- Returns a function: how many bytes a call of make() takes, by so many calls with the collector stopped.
return function(make, calls)
  make()
  collectgarbage() collectgarbage("stop")
  local before = collectgarbage("count")
  for i = 1, calls do make() end
  local size = (collectgarbage("count") - before) * 1024 / calls
  collectgarbage("restart")
  return size
end
