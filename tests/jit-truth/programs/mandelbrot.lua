-- Mandelbrot set: a tight numeric loop in a function of its own.
local function escapes(cr, ci, limit)
	local zr, zi = 0, 0
	for i = 1, limit do
		local r2 = zr * zr
		local i2 = zi * zi
		if r2 + i2 > 4 then
			return i
		end
		zi = 2 * zr * zi + ci
		zr = r2 - i2 + cr
	end
	return limit
end

local function row(y, width, height, limit)
	local ci = 2 * y / height - 1
	local sum = 0
	for x = 0, width - 1 do
		local cr = 3 * x / width - 2
		sum = sum + escapes(cr, ci, limit)
	end
	return sum
end

local finish = os.clock() + tonumber(arg[1] or 1)
while os.clock() < finish do
	for y = 0, 99 do
		row(y, 150, 100, 100)
	end
end
-- SPDX-License-Identifier: MIT
