-- Generic loops, and builtins that call back.
local list, record = { 10, 20, 30 }, { a = 1, b = 2 }

local function each(t, i)
	@ i = i + 1
	@ if t[i] then
		@ return i, t[i]
	end
	@ return nil
end

local function compare(a, b)
	@ local less = a < b
	@ return less
end

local function replace(s)
	@ local r = s .. s
	@ return r
end

return function()
	@ for k, v in pairs(record) do
		@ local x = v
	end
	@ local step, state, first = ipairs(list)
	@ for i, v in step, state, first do -- ipairs
		@ local x = v
	end
	@ for i, v in each, list, 0 do
		@ local x = v
	end
	@ local words = string.gmatch("ab cd", "%a+")
	@ for w in words do -- gmatch
		@ local x = w
	end
	@ local t = { 3, 1, 2 }
	@ table.sort(t, compare)
	@ local s = string.gsub("abc", "%a", replace)
	@ table.concat(list, ",")
	@ s = string.format("%d %s", 1, "x")
	@ s = string.sub("abcdef", 2, 3)
	@ s = math.floor(2.5)
	@ s = math.sin(1)
	@ s = tostring(12)
	@ s = tonumber("12")
	@ s = type(s)
	@ s = #list
	@ s = 2 ^ 0.5
	@ s = select(2, 1, 2, 3)
	@ s = unpack(list)
	@ s = setmetatable({}, nil)
	@ s = string.byte("a")
	@ s = string.char(65)
	@ s = string.rep("x", 5)
	@ s = next(record)
	@ s = rawequal(list, record)
	@ s = math.max(1, 2, 3)
	@ table.insert(t, 4)
	@ table.remove(t)
	@ s = "a" .. 1 .. "b"
	@ s = function() end
end
-- SPDX-License-Identifier: MIT
