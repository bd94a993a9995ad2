-- Loops over pairs(), which themselves call nothing, with a body that calls one function.
local record, object = { a = 1, b = 2, c = 3, d = 4, e = 5, f = 6 }, {}

function object:set(x)
	@ self.x = x
	@ return x
end

local function each()
	@ for k in pairs(record) do
		@ local x = object:set(1)
	end
	@ return
end

return function()
	@ each()
	@ for k, v in pairs(record) do
		@ local x = object:set(v)
	end
end
-- SPDX-License-Identifier: MIT
