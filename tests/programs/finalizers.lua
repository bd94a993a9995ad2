-- Finalizers run wherever an allocation happens to start the collector.
-- no-testimony: hooks are off while a finalizer runs
-- stack: main churn@churn spin
-- stack: main churn@churn! ([newproxy]! | [getmetatable] | [setmetatable] | [ffi.new]! | [ffi.gc]! | [collectgarbage]!)? (_@finalize (spin | record@record (spin)?)?)?
local spin, ready = dofile("harness.lua")
local ffi = require("ffi")

local function record() -- @record
	spin()
	spin()
end

local function finalize() -- @finalize
	spin()
	record()
	spin()
end

local proxy = newproxy(true)
getmetatable(proxy).__gc = finalize

local function churn() -- @churn
	for i = 1, 100 do
		local object = newproxy(proxy)
		local memory = ffi.gc(ffi.new("int[4]"), finalize)
		local garbage = { object, memory, i }
		spin(10)
	end
	collectgarbage("step", 100)
end

local finish = ready()
while os.clock() < finish do
	churn()
end
-- SPDX-License-Identifier: MIT
