-- for loops: builtin iterators are leaves, those in Lua are named as LuaJIT
-- names the hidden variable that holds them.
-- stack: main by_pairs@by_pairs! ([pairs] | [next]! | spin)?
-- stack: main by_ipairs@by_ipairs! ([ipairs] | [ipairs_aux]! | spin)?
-- stack: main by_next@by_next! ([next]! | spin)?
-- stack: main by_closure@by_closure (range@range | spin | "(for generator)"@step spin)
-- stack: main by_state@by_state (spin | "(for generator)"@stateless spin)
-- stack: main by_object@by_object (spin | "(for generator)"@callable spin)
-- stack: main by_gmatch@by_gmatch ([string.gmatch] | [gmatch_aux]! | spin)
local spin, ready = dofile("harness.lua")

local map, list, text = {}, {}, ("word "):rep(20)
for i = 1, 20 do
	map["key" .. i], list[i] = i, i
end

local function by_pairs() -- @by_pairs
	for _ in pairs(map) do
		spin(20)
	end
end

local function by_ipairs() -- @by_ipairs
	for _ in ipairs(list) do
		spin(20)
	end
end

local function by_next() -- @by_next
	local key = next(map)
	while key do
		spin(20)
		key = next(map, key)
	end
end

local function range(last) -- @range
	local i = 0
	return function() -- @step
		spin()
		i = i + 1
		return i <= last and i or nil
	end
end

local function by_closure() -- @by_closure
	for _ in range(5) do
		spin()
	end
end

local function stateless(last, i) -- @stateless
	spin()
	if i < last then
		return i + 1
	end
end

local function by_state() -- @by_state
	for _ in stateless, 5, 0 do
		spin()
	end
end

local object = setmetatable({}, {
	__call = function(_, last, i) -- @callable
		spin()
		if i < last then
			return i + 1
		end
	end,
})

local function by_object() -- @by_object
	for _ in object, 5, 0 do
		spin()
	end
end

local function by_gmatch() -- @by_gmatch
	for _ in text:gmatch("%a+") do
		spin(20)
	end
end

local finish = ready()
while os.clock() < finish do
	by_pairs()
	by_ipairs()
	by_next()
	by_closure()
	by_state()
	by_object()
	by_gmatch()
end
-- SPDX-License-Identifier: MIT
