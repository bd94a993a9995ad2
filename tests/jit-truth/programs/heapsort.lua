-- Heap sort: array loads and stores, comparisons, a small random generator.
local seed = 42

local function random(limit)
	seed = (seed * 3877 + 29573) % 139968
	return limit * seed / 139968
end

local function less(a, b)
	return a < b
end

local function sift(array, from, to)
	local parent = from
	local value = array[parent]
	while true do
		local child = parent * 2
		if child > to then
			break
		end
		if child < to and less(array[child], array[child + 1]) then
			child = child + 1
		end
		if not less(value, array[child]) then
			break
		end
		array[parent] = array[child]
		parent = child
	end
	array[parent] = value
end

local function sort(array, n)
	for i = math.floor(n / 2), 1, -1 do
		sift(array, i, n)
	end
	for i = n, 2, -1 do
		local top = array[1]
		array[1] = array[i]
		array[i] = top
		sift(array, 1, i - 1)
	end
end

local function fill(array, n)
	for i = 1, n do
		array[i] = random(1000)
	end
end

local finish = os.clock() + tonumber(arg[1] or 1)
local array = {}
while os.clock() < finish do
	fill(array, 10000)
	sort(array, 10000)
end
-- SPDX-License-Identifier: MIT
