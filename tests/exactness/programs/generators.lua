-- Coroutines that yield again and again to a loop that is compiled around each resume.
local function body(a)
	@ local x = a
	for k = 1, 20 do
		@ coroutine.yield(k)
	end
	@ return a
end

return function()
	@ local gen = coroutine.wrap(body)
	for k = 1, 20 do
		@ gen(k)
	end
	@ return
end
-- SPDX-License-Identifier: MIT
