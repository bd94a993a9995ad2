-- LuaJIT's own work for compiled functions that an interpreted one calls; args: SECONDS.
-- SPDX-License-Identifier: MIT
local function records(i)
	return { x = i, y = i, name = "some" }
end

local function joins(a, b)
	return "(" .. a .. b .. ")"
end

local function rounds()
	for i = 1, 2000 do
		records(i)
		joins("a", i % 7)
	end
end
jit.off(rounds)

io.write("ready\n")
io.flush()
local finish = os.clock() + tonumber(arg[1])
while os.clock() < finish do
	rounds()
end
