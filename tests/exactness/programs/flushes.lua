-- Compiled code that is thrown away while it is being made and used.
local function work(n)
	local sum = 0
	for i = 1, n do
		if i % 3 == 0 then
			sum = sum + i
		else
			sum = sum - 1
		end
	end
	return sum
end

local function flushed(n)
	local sum = 0
	for i = 1, n do
		sum = sum + work(5)
		if i == n / 2 then
			jit.flush()
		end
	end
	return sum
end

local function up(n)
	if n == 0 then
		jit.flush()
		return 0
	end
	return up(n - 1) + work(3)
end

return function()
	@ flushed(8)
	@ up(6)
	@ jit.flush(work)
	@ work(10)
end
-- SPDX-License-Identifier: MIT
