-- SPDX-License-Identifier: MIT
-- Generated functions of 300 branches each: traces with many side traces and snapshots.
local FUNCTIONS, BRANCHES, VALUES = 40, 300, 50

local function generate(seed)
	local lines = { "local values, i = ... local sum = i" }
	for branch = 1, BRANCHES do
		local compared, added = branch % VALUES + 1, (branch * 7 + seed) % VALUES + 1
		lines[#lines + 1] = ("if values[%d] > i %% %d then"):format(compared, branch + 3)
		lines[#lines + 1] = ("sum = sum + values[%d] else sum = sum * 0.5 + %d end"):format(added, branch)
	end
	lines[#lines + 1] = "return sum"
	return assert(loadstring(table.concat(lines, "\n"), "=generated_" .. seed))
end

local functions, values = {}, {}
for seed = 1, FUNCTIONS do
	functions[seed] = generate(seed)
end
for i = 1, VALUES do
	values[i] = i * 3 % 17
end
while true do
	for seed = 1, FUNCTIONS do
		for i = 1, 200 do
			functions[seed](values, i)
			values[i % VALUES + 1] = i % 23
		end
	end
end
