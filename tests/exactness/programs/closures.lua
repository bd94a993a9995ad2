-- Closures: made, called with open and closed upvalues, kept and given up.
local function counter()
	@ local n = 0
	@ local function up()
		@ n = n + 1
		@ return n
	end
	@ up()
	@ return up
end

-- The way out of a block jumps, then closes its upvalues.
local function early(n)
	@ local x = n
	@ local function f()
		@ return x
	end
	@ if n == 1 then
		@ f()
		@ return x
	end
	@ for i = 1, 3 do
		@ local function g()
			@ return i
		end
		@ if i == n then
			@ break
		end
		@ g()
	end
	@ x = 3
	@ return f
end

local function each(list, f)
	@ for i = 1, #list do
		@ list[i] = f(list[i])
	end
	@ return list
end

local function composed(f, g)
	@ return function(x)
		@ return f(g(x))
	end
end

local function fixed_point(f)
	@ return (function(x) return x(x) end)(function(x) return f(function(y) return x(x)(y) end) end)
end

local factorial = fixed_point(function(again)
	@ return function(n)
		@ if n < 2 then
			@ return 1
		end
		@ return n * again(n - 1)
	end
end)

return function()
	@ local up = counter()
	@ local x = up() + up()
	@ local scale = 3
	@ each({ 1, 2, 3 }, function(a) return a * scale end)
	@ local twice = composed(up, function(a) return a + x end)
	@ x = twice(1)
	@ x = factorial(3)
	@ early(1)
	@ early(2)
end
-- SPDX-License-Identifier: MIT
