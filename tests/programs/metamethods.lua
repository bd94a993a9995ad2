-- Every metamethod that calls a function. They are called by an instruction,
-- not by name: LuaJIT names them after the event.
-- stack: main __index@index spin
-- stack: main __newindex@newindex spin
-- stack: main left@call spin
-- stack: main (__add@arithmetic | __sub@arithmetic | __mul@arithmetic | __div@arithmetic | __mod@arithmetic | __pow@arithmetic | __unm@arithmetic) spin
-- stack: main __concat@concat spin
-- stack: main (__eq@compare | __lt@compare | __le@compare) spin
-- stack: main __len@length spin
-- stack: main tostring@text spin
-- stack: main [string.format] @text spin
-- stack: main (helper@helper)? __index@index spin
-- stack: main __add@nested (__index@index)? spin
-- stack: main [tostring]
-- stack: main [rawequal]
local spin, ready = dofile("harness.lua")

local function arithmetic(left, right) -- @arithmetic
	spin()
	return left
end

local function compare() -- @compare
	return spin() > 0
end

local meta = {
	__index = function(_, key) -- @index
		spin()
		return key
	end,
	__newindex = function() -- @newindex
		spin()
	end,
	__call = function(_, argument) -- @call
		spin()
		return argument
	end,
	__concat = function() -- @concat
		spin()
		return "joined"
	end,
	__tostring = function() -- @text
		spin()
		return "text"
	end,
	__add = arithmetic, __sub = arithmetic, __mul = arithmetic, __div = arithmetic,
	__mod = arithmetic, __pow = arithmetic, __unm = arithmetic,
	__eq = compare, __lt = compare, __le = compare,
}

local left, right = setmetatable({}, meta), setmetatable({}, meta)

local function helper(object) -- @helper
	local value = object.field
	return value
end

local nested = setmetatable({}, {
	__add = function() -- @nested
		spin()
		return left.nested
	end,
})

-- Tables have __len only in the Lua 5.2 flavour; userdata always have.
local measured = newproxy(true)
getmetatable(measured).__len = function() -- @length
	return 1 + spin()
end

local finish = ready()
while os.clock() < finish do
	local _
	_ = left.field
	_ = left[1]
	left.field = 1
	left[2] = 2
	_ = left(1)
	_ = left + 1
	_ = 1 - left
	_ = left * right
	_ = left / 2
	_ = left % 2
	_ = left ^ 2
	_ = -left
	_ = left .. "tail"
	_ = "a" .. "b" .. right
	_ = left == right
	_ = left < right
	_ = left <= right
	_ = #measured
	_ = tostring(left)
	_ = string.format("%s and %s", left, right)
	_ = helper(left)
	_ = nested + 1
end
-- SPDX-License-Identifier: MIT
