-- Finalizers run on top of the builtin that started the collector.
local ffi = require("ffi")

local function record()
	here() return
end

local function finalize()
	here()
	record()
	here() return
end

return function()
	@ local proxy = newproxy(true)
	@ getmetatable(proxy).__gc = finalize
	@ proxy = nil
	@ collectgarbage()
	@ local memory = ffi.gc(ffi.new("int[4]"), finalize)
	@ memory = nil
	@ collectgarbage()
end
-- SPDX-License-Identifier: MIT
