-- aborts.lua: code that LuaJIT does not compile, for several reasons. Prints each abort as
-- LuaJIT reports it: what was recorded, its line, the reason. Then says "ready", waits for a
-- line, and spends its time in code that is not compiled until it is killed.
local util, vmdef = require("jit.util"), require("jit.vmdef")
local starts, told = {}, {}

local function note(what, number, func, pc, code)
	if what == "start" then
		-- Side traces and stitched ones have a parent here. Their aborts are noted elsewhere.
		starts[number] = code == nil and { func, pc } or nil
	elseif what == "abort" and starts[number] then
		local start = starts[number]
		local line = util.funcinfo(start[1], start[2]).currentline
		local text = vmdef.traceerr[code]:gsub(" %%[ds]", "")
		table.insert(told, table.concat({ start[2] > 0 and "loop" or "function", line, text }, "\t"))
	end
end
jit.off(note)
jit.attach(note, "trace")
jit.opt.start("hotloop=5", "maxrecord=60")

local function closures(n)
	local made
	for i = 1, n do
		made = function()
			return i
		end
	end
	return made
end

local function switched_off(n)
	local sum = 0
	for i = 1, n do
		sum = sum + i % 7
	end
	return sum
end
jit.off(switched_off)

local function calls_switched_off(n)
	local sum = 0
	for _ = 1, n do
		sum = sum + switched_off(1)
	end
	return sum
end

local function leaves(n)
	local sum = 0
	for i = 1, n do
		for j = 1, 4 do
			sum = sum + j
			if j % 2 == 0 then
				break
			end
		end
	end
	return sum
end

local function long(n)
	local a = { 1, 2, 3, 4, 5 }
	for i = 1, n do
		a[1] = a[2] + i a[2] = a[3] + i a[3] = a[4] + i a[4] = a[5] + i a[5] = a[1] % 9
		a[1] = a[2] + i a[2] = a[3] + i a[3] = a[4] + i a[4] = a[5] + i a[5] = a[1] % 9
		a[1] = a[2] + i a[2] = a[3] + i a[3] = a[4] + i a[4] = a[5] + i a[5] = a[1] % 9
		a[1] = a[2] + i a[2] = a[3] + i a[3] = a[4] + i a[4] = a[5] + i a[5] = a[1] % 9
		a[1] = a[2] + i a[2] = a[3] + i a[3] = a[4] + i a[4] = a[5] + i a[5] = a[1] % 9
		a[1] = a[2] + i a[2] = a[3] + i a[3] = a[4] + i a[4] = a[5] + i a[5] = a[1] % 9
	end
	return a[1]
end

-- Aborted once or twice, and so tried again.
local function few(n)
	local made
	for i = 1, n do
		made = function()
			return i
		end
	end
	return made
end

closures(300000)
calls_switched_off(300000)
leaves(300000)
long(300000)
few(40)
switched_off(1000)
jit.attach(note)
print(table.concat(told, "\n"))
print("ready")
io.stdout:flush()
io.read()
while true do
	closures(100)
	switched_off(1000)
end
-- SPDX-License-Identifier: MIT
