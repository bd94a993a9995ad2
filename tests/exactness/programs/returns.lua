-- SPDX-License-Identifier: MIT
-- Traces that return below the function in which they begin, loops that go on by a jump, and tests of known values.
local function sum(n)
	if n == 0 then
		return 0
	end
	return n + sum(n - 1)
end

local function fibonacci(n)
	if n < 2 then
		return n
	end
	local x = fibonacci(n - 1)
	return x + fibonacci(n - 2)
end

local function leaf(n)
	for i = 1, 3 do
		n = n + i
	end
	return n
end

local function inner(n)
	if n % 3 == 0 then
		return leaf(n)
	end
	local x = leaf(n)
	return x + 1
end

local function outer(n)
	if n % 2 == 0 then
		return inner(n)
	end
	local x = inner(n)
	@ return x
end

local function tree(depth)
	if depth == 0 then
		return false
	end
	return { tree(depth - 1), tree(depth - 1) }
end

local function count(node)
	if not node then
		return 1
	end
	local n = 0
	local step, state, start = ipairs(node)
	for _, child in step, state, start do -- ipairs
		n = n + count(child)
	end
	return n + 1
end

local function odd(n)
	for i = 1, n do
		if i % 2 == 0 then
			goto continue
		end
		if i > 7 then
			do return i end
		end
		n = n + outer(i)
		::continue::
	end
	return n
end

local function first_above(n, ...)
	local i = 0
	while true do
		i = i + 1
		if leaf(i) > n then
			return i, ...
		end
	end
end

---- Tests whose values a trace knows

local sink = {}

local function nothing(n)
	sink[n] = n
end

local function after(flag, n)
	nothing(n)
	if flag then
		sink[n % 7 + 1] = n / 3
	else
		sink[n % 5 + 1] = n / 5
	end
end

local callable = setmetatable({}, { __call = function(self, flag, n)
	if flag then
		sink[n % 7 + 1] = n / 3
	else
		sink[n % 5 + 1] = n / 5
	end
end })

local counting = setmetatable({}, { __newindex = function(t, key, v)
	sink[key % 11 + 1] = v
end })

local function effects(flag, n)
	counting[n] = n
	if flag then
		sink[n % 7 + 1] = n / 3
	else
		sink[n % 5 + 1] = n / 5
	end
end

local function last(flag, ...)
	local n = ...
	if flag then
		sink[n % 7 + 1] = n / 3
	else
		sink[n % 5 + 1] = n / 5
	end
end

local function passes(flag, n)
	return last(flag, n)
end

local function kind(key, n)
	if key == "name" then
		sink[n % 7 + 1] = n / 3
	elseif key == nil then
		sink[n % 5 + 1] = n / 5
	else
		sink[n % 3 + 1] = n / 7
	end
end

local function run_tests()
	for i = 1, 60 do
		after(true, i)
		after(false, i)
	end
	for i = 1, 60 do
		callable(true, i)
		callable(false, i)
	end
	for i = 1, 60 do
		effects(true, i)
		effects(false, i)
		passes(true, i)
		passes(false, i)
	end
	for i = 1, 60 do
		kind("name", i)
		kind(nil, i)
		kind(i, i)
	end
end

return function()
	@ local x = sum(8)
	@ x = fibonacci(5)
	@ x = outer(1) + outer(2) + outer(3) + outer(6)
	@ local root = tree(2)
	@ x = count(root)
	@ x = count({ false, false, false, false, false, false, false, false, false, false, false, false })
	@ x = odd(9)
	@ x = first_above(9, 1, 2)
	for i = 1, 4 do
		x = x + outer(i)
		x = x + sum(3)
		x = x + select("#", first_above(i, x))
	end
	@ x = odd(6)
	run_tests()
	@ return
end
