-- Vararg functions, tail calls, and both.
local function pass(...)
	@ local a = ...
	@ return ...
end

local function count(...)
	@ local n = select("#", ...)
	@ return n, ...
end

local function rest(a, ...)
	@ local t = { ... }
	@ pass(a, ...)
	@ local x, y = pass(...)
	@ return #t
end

local function tail(n)
	@ if n == 0 then
		@ return 7
	end
	@ return tail(n - 1)
end

local function tail_vararg(n, ...)
	@ if n == 0 then
		@ return ...
	end
	@ return tail_vararg(n - 1, n, ...)
end

local function into(...)
	@ return rest(...)
end

local function into_builtin(...)
	@ return math.max(...)
end

local function out_of_builtin(f)
	@ return pcall(f, 1, 2)
end

return function()
	@ pass()
	@ pass(1)
	@ local a, b, c, d, e = pass(1, 2, 3)
	@ count(nil, nil)
	@ rest(1, 2, 3, 4)
	@ tail(3)
	@ tail_vararg(3)
	@ into(1, 2, 3)
	@ into_builtin(1, 2)
	@ out_of_builtin(pass)
	@ local t = { pass(1, 2, 3, 4, 5, 6) }
end
-- SPDX-License-Identifier: MIT
