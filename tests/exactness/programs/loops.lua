-- SPDX-License-Identifier: MIT
-- A numeric loop in a function of its own, entered again and again.
local function sum(n)
	@ local x = 0
	@ for i = n, 1, -1 do
		@ x = x + i
	end
	@ return x
end
return function()
	@ for i = 1, 4 do
		@ local y = sum(4)
	end
end
