-- SPDX-License-Identifier: MIT
-- Calls whose callee changes from time to time: closures of one prototype, upvalues that are set anew,
-- chains of objects, functions that are loaded and given up.
local setmetatable, loadstring = setmetatable, loadstring

local function add(x)
	return x + 1
end

local function take(x)
	@ local y = x - 1
	@ return y
end

local function double(x)
	@ return add(x)
end

local function apply(f, x)
	return (f(x)) -- floor
end

local function made(f)
	return function(x)
		local y = f(x) -- floor
		return y
	end
end

local by_add, by_take, by_floor = made(add), made(take), made(math.floor)
local functions = { add, take, by_add, by_take, double, by_floor, math.floor }

local function polymorphic()
	local x = 0
	for i = 1, 14 do
		x = x + apply(functions[i % #functions + 1], i)
	end
	for i = 1, #functions do
		@ x = x + functions[i](1) -- floor
	end
	@ return x
end

local current = add

local function by_upvalue(x)
	return (current(x))
end

local function swapped()
	local x = 0
	for i = 1, 12 do
		current = i % 3 == 0 and add or i % 3 == 1 and take or by_add
		x = x + by_upvalue(i)
	end
	@ current = double
	@ x = x + by_upvalue(1)
	@ return x
end

local base = { name = function(self) return 1 end }
local derived = setmetatable({}, { __index = base })
local third = setmetatable({ over = function(self) return self:name() + 2 end }, { __index = derived })
local lazy = setmetatable({}, { __index = function(self, key)
	local value = third[key]
	return value
end, __newindex = third })
local callable = setmetatable({}, { __call = function(self, x)
	return self.inner and self.inner(x) or take(x)
end })
local outer = setmetatable({ inner = callable }, getmetatable(callable))

local function chained()
	local x = 0
	for i = 1, 6 do
		x = x + third:name() + derived:name()
		x = x + lazy:over()
		x = x + outer(i)
		@ x = x + callable(i)
		lazy.count = i
	end
	@ return x
end

local source = "local f, x = ...\nlocal y = f(x)\nreturn y + 1"

local function loaded()
	local x = 0
	for i = 1, 3 do
		local chunk = loadstring(source, "=loaded")
		for j = 1, 4 do
			x = x + chunk(add, j)
			x = x + chunk(by_take, j)
		end
	end
	@ x = x + loadstring("local f = ... return f(2)", "=tail")(take)
	@ return x
end

return function()
	@ polymorphic()
	@ swapped()
	@ chained()
	@ loaded()
	for i = 1, 3 do
		polymorphic()
		swapped()
		chained()
	end
	@ return
end
