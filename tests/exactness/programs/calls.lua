-- Plain calls and returns of all widths.
local function leaf()
	@ local a = 1
	@ return
end

local function one(a)
	@ leaf()
	@ return a
end

local function many(a, b, c)
	@ one(a)
	@ return a, b, c, a, b
end

local function adjusted()
	@ local a, b, c, d, e, f, g = many(1, 2, 3)
	@ local t = { many(1, 2, 3) }
	@ return many(4, 5, 6)
end

local object = { method = function(self, n)
	@ if n > 0 then
		@ self:method(n - 1)
		@ return n
	end
	@ return 0
end }

local function filled(a, b, c, d, e, f, g, h)
	@ return a
end

local function deep(n)
	@ if n == 0 then
		@ return 0
	end
	@ local inner = deep(n - 1)
	@ return inner + 1
end

local function conditions(n)
	@ local sum = 0
	for i = 1, n do
		if i % 2 == 0 then
			sum = sum + i
		elseif i > 3 then
			sum = sum - i
		else
			sum = sum * 2
		end
	end
	while sum > 0 do
		sum = sum - 3
	end
	repeat
		sum = sum + 1
	until sum >= 2
	@ return sum
end

return function()
	@ leaf()
	@ local x = one(1)
	@ local y, z = many(1, 2, 3)
	@ adjusted()
	@ object:method(3)
	@ filled(1)
	@ deep(5)
	@ conditions(10)
	@ local s = leaf() or one(2)
end
-- SPDX-License-Identifier: MIT
