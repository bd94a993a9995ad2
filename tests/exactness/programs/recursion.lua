-- Deep recursion: direct, mutual, through builtins, and out of it at once.
local odd

local function even(n)
	@ if n == 0 then
		@ return true
	end
	@ local x = odd(n - 1)
	@ return x
end

function odd(n)
	@ if n == 0 then
		@ return false
	end
	@ local x = even(n - 1)
	@ return x
end

local function protected(n)
	@ if n == 0 then
		@ return 0
	end
	@ local ok, depth = pcall(protected, n - 1)
	@ return depth + 1
end

local function escape(n)
	@ if n == 0 then
		@ error("out", 0)
	end
	@ local x = escape(n - 1)
	@ return x
end

return function()
	@ even(40)
	@ protected(12)
	@ pcall(escape, 40)
end
-- SPDX-License-Identifier: MIT
