-- SPDX-License-Identifier: MIT
-- next() where the VM stored its base last for a function that has returned, further up the stack.
local next, type = next, type
local record = { a = 1, b = 2 }

local function stores_base(x)
	@ local t = { x }
	@ return
end

return function()
	@ local n = type(1, 2, 3, 4, 5, 6, stores_base(1))
	@ n = next(record)
	@ n = next(record, "a")
	@ n = next(record, "b")
end
