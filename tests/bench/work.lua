-- A fixed amount of work of one kind, begun when a line comes: luajit work.lua KIND AMOUNT
local kind, amount = arg[1], tonumber(arg[2])

local function interpreted()
	jit.off(true, true)
	local list, sum = {}, 0
	for i = 1, 100 do
		list[i] = { value = i }
	end
	for _ = 1, amount do
		for i = 1, 100 do
			sum = (sum + list[i].value * 3) % 1000003
		end
	end
	return sum
end

local function compiled()
	local sum = 0
	for i = 1, amount * 2000 do
		sum = (sum + i * 3) % 1000003
	end
	return sum
end

local function in_c()
	local text, count = ("the quick brown fox "):rep(50), 0
	for _ = 1, amount do
		count = count + select(2, text:gsub("%w+", string.upper))
	end
	return count
end

io.read("*l")
local result = ({ interpreted = interpreted, compiled = compiled, in_c = in_c })[kind]()
io.write(result, "\ndone\n")
