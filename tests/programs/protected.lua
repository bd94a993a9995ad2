-- pcall and xpcall: calls through them, errors that unwind, handlers that run
-- on top of the function that failed.
-- stack: main [pcall] (@work spin)?
-- stack: main [xpcall] (@work spin)?
-- stack: main [pcall] [pcall] @work spin
-- stack: main [pcall] @raise (burrow@burrow)+ (spin | [error]!)
-- stack: main [xpcall] @raise (burrow@burrow)+ (spin | [error] @handler spin)
-- stack: main [xpcall] @arithmetic (_@handler)? spin
-- stack: main [xpcall] @missing_method (_@handler)? spin
-- stack: main [pcall] @rethrow (spin | [error]! | [pcall] @raise (burrow@burrow)+ (spin | [error]!))
local spin, ready = dofile("harness.lua")

local function work(...) -- @work
	return ..., (spin())
end

local function burrow(depth) -- @burrow
	spin()
	if depth > 0 then
		burrow(depth - 1)
	else
		error("out of depth")
	end
	spin()
end

local function raise() -- @raise
	burrow(3)
	spin()
end

local function rethrow() -- @rethrow
	local _, message = pcall(raise)
	spin()
	error(message, 0)
end

local function arithmetic() -- @arithmetic
	spin()
	local nothing
	return nothing + 1
end

local function missing_method() -- @missing_method
	spin()
	local nothing = {}
	return nothing.missing()
end

local function handler(message) -- @handler
	spin()
	return message
end

local finish = ready()
while os.clock() < finish do
	pcall(work, 1, 2)
	xpcall(work, handler, 1, 2)
	pcall(pcall, work)
	pcall(raise)
	xpcall(raise, handler)
	xpcall(arithmetic, handler)
	xpcall(missing_method, handler)
	pcall(rethrow)
end
-- SPDX-License-Identifier: MIT
