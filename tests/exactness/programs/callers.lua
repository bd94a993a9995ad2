-- SPDX-License-Identifier: MIT
-- Builtins that call back, functions that fail there or yield, and strings that are built up.
local has_buffers, buffers = pcall(require, "string.buffer")
local wrap, yield = coroutine.wrap, coroutine.yield
local list, record = { 3, 1, 2 }, { a = 1, b = 2 }

local function fail(x)
	@ error("failed", 0)
end

local function replace(c)
	@ local x = c .. c
	@ return x
end

local function replace_until(c)
	@ if c == "c" then
		@ fail(c)
	end
	@ return c
end

local function less(a, b)
	@ local is_less = a < b
	@ return is_less
end

local function fail_late(a, b)
	@ if a == b + 1 then
		@ return fail(a)
	end
	@ return a < b
end

local function each(key, value)
	@ if value == 9 then
		@ return key
	end
end

local function fail_each()
	@ fail(1)
end

local function numbers(n)
	@ return wrap(function()
		for i = 1, n do
			@ yield(i)
		end
	end)
end

local function squares(n)
	@ return wrap(function()
		for i in numbers(n) do
			@ local x = replace(i)
			@ yield(i * i)
		end
	end)
end

local function failing(n)
	@ return wrap(function()
		@ yield(n)
		@ fail(n)
	end)
end

local function through(iterator)
	@ for i in iterator do
		@ local x = i
	end
	@ return
end

local printed = setmetatable({}, { __tostring = function()
	@ local x = replace("p")
	@ return x
end })

local function build()
	@ local buffer = buffers.new()
	@ buffer:put("abc", 1, 2.5)
	@ buffer:put(printed)
	@ buffer:putf("%d %s", 1, "x")
	for i = 1, 6 do
		buffer:put(i)
		buffer:put(replace("x"))
	end
	@ local s = buffer:get(2)
	@ s = buffer:tostring()
	@ s = #buffer
	@ s = buffer .. "x"
	@ s = buffers.decode(buffers.encode({ 1, 2 })) -- encode
	@ buffer:reset()
	@ s = buffer:get()
	@ return s
end

return function()
	@ local s = ("abc"):gsub(".", replace)
	@ s = pcall(string.gsub, "abcd", ".", replace_until)
	@ s = table.sort({ 3, 1, 2 }, less)
	@ s = pcall(table.sort, { 4, 3, 1, 2 }, fail_late)
	@ table.foreach(record, each)
	@ s = table.foreachi({ 7, 8, 9, 10 }, each)
	@ s = pcall(table.foreach, record, fail_each)
	@ through(squares(3))
	@ s = pcall(through, failing(1))
	for i = 1, 5 do
		s = ("ab"):gsub("%a", replace)
		table.sort({ 2, 1 }, less)
		for j in numbers(3) do
			@ s = replace(j)
		end
	end
	@ if has_buffers then
		@ s = build()
	end
	@ return
end
