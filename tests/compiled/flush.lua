-- flush.lua: the same functions are compiled and their traces flushed all the
-- time, so that numbers and addresses of traces are used again and again.
-- Prints how many, by the ten thousand. No two functions share a line.
jit.opt.start("hotloop=2", "hotexit=2")
local functions = {}
for i = 1, 100 do
	functions[i] = loadstring(("\n"):rep(10 * i) .. [[
		local n = ...
		local sum = 0
		for i = 1, n do
			if i % 3 == 0 then sum = sum + i else sum = sum - 1 end
		end
		return sum
	]], "=f" .. i)
end
local made = 0
io.write("ready\n")
io.flush()
while true do
	for i = 1, #functions do
		functions[i](200)
	end
	made = made + #functions
	jit.flush()
	if made % 10000 == 0 then
		io.write(made, "\n")
		io.flush()
	end
end
-- SPDX-License-Identifier: MIT
