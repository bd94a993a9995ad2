-- SPDX-License-Identifier: MIT
-- Tail calls of functions, builtins and objects, in loops and out of them.
local rep, select, tostring, setmetatable = string.rep, select, tostring, setmetatable

local function last(...)
	@ local n = select("#", ...)
	@ return n
end

local function middle(...)
	@ return last(1, ...)
end

local function first(a)
	return middle(a)
end

local function into_rep(n)
	@ return string.rep("x", n) -- rep
end

local function into_local_rep(n)
	return rep("x", n)
end

local function into_select(...)
	@ return select(2, ...)
end

local function into_tostring(x)
	@ return tostring(x) -- type
end

local function guarded(f, ...)
	@ return pcall(f, ...)
end

local function guarded_twice(f)
	return pcall(pcall, f)
end

local function handle(message)
	@ return into_tostring(message)
end

local function handled(f)
	@ return xpcall(f, handle)
end

local function fail()
	@ return error("failed", 0)
end

local function by_method(object, n)
	@ return object:method(n)
end

local function by_call(object, n)
	return object(n)
end

local function by_index(object)
	@ return object.key
end

local meta = {}
local object = setmetatable({ method = function(_, n)
	@ return into_rep(n)
end }, meta)
meta.__call = function(_, n)
	@ return last(n)
end
meta.__index = function(_, key)
	@ return last(key)
end
meta.__add = function(a, b)
	return middle(a)
end
meta.__lt = function()
	@ return last(1) > 0
end
meta.__concat = function()
	@ return into_rep(2)
end
local builtin_meta = { __index = rawget, __add = rawequal, __call = select, __tostring = type }
local plain = setmetatable({}, builtin_meta)

local function even(n)
	if n == 0 then
		@ return into_rep(3)
	end
	return last(n) and even(n - 1)
end

local function compiled()
	local x = 0
	for i = 1, 6 do
		x = x + first(i)
		x = x + #into_rep(i)
		x = x + #into_local_rep(i)
		@ x = x + last(i)
		x = x + #into_tostring(i)
		x = x + by_call(object, i)
		x = x + #object:method(2)
		x = x + (object + 1)
	end
	@ return x
end

return function()
	@ local ok = first(1)
	@ ok = into_rep(3)
	@ ok = into_local_rep(3)
	@ ok = into_select(1, 2, 3)
	@ ok = into_tostring(object == nil)
	@ ok = guarded(last, 1, 2)
	@ ok = guarded(into_rep, 4)
	@ ok = guarded(fail)
	@ ok = guarded_twice(last)
	@ ok = guarded_twice(fail)
	@ ok = handled(middle)
	@ ok = handled(fail)
	@ ok = by_method(object, 2)
	@ ok = by_call(object, 2)
	@ ok = by_index(object)
	@ ok = object + 1
	@ ok = object < object
	@ ok = object .. "x"
	@ ok = plain.key -- rawget
	@ ok = plain + plain -- rawequal
	@ ok = into_tostring(plain)
	for i = 1, 3 do
		@ ok = guarded(first, i)
		@ ok = even(4)
		ok = compiled()
	end
	@ return
end
