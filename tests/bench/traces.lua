-- So many loops, each compiled, take turns: luajit traces.lua COUNT
jit.opt.start("maxtrace=60000", "maxmcode=65536", "hotloop=2")

local loops = {}
for i = 1, tonumber(arg[1]) do
	loops[i] = loadstring("local n, sum = ..., 0 for i = 1, n do sum = sum + i % 7 end return sum", "=loop_" .. i)
	loops[i](100)
end
-- What calls them is not to be a trace that holds them all.
jit.off(true, false)
io.write("ready\n")
io.flush()
while true do
	for i = 1, #loops do
		loops[i](20000)
	end
end
-- SPDX-License-Identifier: MIT
