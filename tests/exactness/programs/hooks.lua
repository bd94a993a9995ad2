-- A hook runs on top of the function that it interrupts, at each of its lines. Functions that are not
-- compiled, for of compiled ones some lines have no hook, and others two.
local function record()
	here() return
end

local function hook()
	here()
	record()
	here() return
end

local function leaf(x)
	@ local y = x + 1
	@ return y
end
jit.off(leaf)

local function body()
	@ sethook(hook)
	@ local x = leaf(1)
	@ for i = 1, 3 do
		@ x = leaf(x)
	end
	@ sethook(nil)
	@ x = leaf(x)
end
jit.off(body)

return body
-- SPDX-License-Identifier: MIT
