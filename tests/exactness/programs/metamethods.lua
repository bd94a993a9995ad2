-- Calls through continuations.
local meta = {}
local left, right = setmetatable({}, meta), setmetatable({}, meta)

local function arithmetic(a, b)
	@ local x = 1
	@ return x
end

meta.__add, meta.__mul, meta.__unm, meta.__pow, meta.__mod = arithmetic, arithmetic, arithmetic, arithmetic, arithmetic
meta.__concat = function(a, b)
	@ local x = "s"
	@ return x
end
local function compare(a, b)
	@ local x = true
	@ return x
end
meta.__eq, meta.__lt, meta.__le = compare, compare, compare
meta.__index = function(t, key)
	@ local x = key
	@ return x
end
meta.__newindex = function(t, key, value)
	@ local x = key
	@ return
end
meta.__call = function(self, a)
	@ local x = a
	@ return x
end
meta.__tostring = function()
	@ local x = "text"
	@ return x
end

local chained = setmetatable({}, { __index = left, __newindex = left })
local userdata = newproxy(true)
getmetatable(userdata).__len = function()
	@ local x = 3
	@ return x
end
getmetatable(userdata).__index = function(u, k)
	@ local x = left[k]
	@ return x
end

return function()
	local _
	@ _ = left + right
	@ _ = left * 2
	@ _ = 2 * left
	@ _ = -left
	@ _ = left ^ 2
	@ _ = left % right
	@ _ = left .. "x"
	@ _ = "a" .. "b" .. left
	@ _ = left == right
	@ if left < right then
		@ _ = 1
	end
	@ if not (left <= right) then
		@ _ = 2
	end
	@ _ = left.field
	@ _ = left[1]
	@ _ = left[_]
	@ left.field = 1
	@ left[1] = 2
	@ _ = chained.field
	@ chained.field = 3
	@ _ = left(1)
	@ _ = #userdata
	@ _ = userdata.field
	@ _ = tostring(left)
	@ _ = rawget(left, 1)
end
-- SPDX-License-Identifier: MIT
