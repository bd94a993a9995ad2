-- SPDX-License-Identifier: MIT
-- Without fault: run with -joff, as where machine code is not allowed; the time is spread over the work.
local function tokens(text)
	local list, at = {}, 1
	while at <= #text do
		local byte = text:byte(at)
		if byte >= 48 and byte <= 57 then
			local value = 0
			while byte and byte >= 48 and byte <= 57 do
				value = value * 10 + byte - 48
				at = at + 1
				byte = text:byte(at)
			end
			list[#list + 1] = value
		else
			if byte ~= 32 then list[#list + 1] = text:sub(at, at) end
			at = at + 1
		end
	end
	return list
end

local expression

local function factor(list, at)
	if list[at] == "(" then
		local value, after = expression(list, at + 1)
		return value, after + 1
	end
	return list[at], at + 1
end

local function term(list, at)
	local value, right
	value, at = factor(list, at)
	while list[at] == "*" do
		right, at = factor(list, at + 1)
		value = value * right % 1000003
	end
	return value, at
end

function expression(list, at)
	local value, right
	value, at = term(list, at)
	while list[at] == "+" do
		right, at = term(list, at + 1)
		value = value + right
	end
	return value, at
end

print("ready")
io.stdout:flush()
local list = tokens("(12 + 7) * (3 + 4 * 5) + 6 * (7 + 8) * 9 + (((1 + 2) * 3) + 4) * 5")
while true do
	for _ = 1, 50 do
		expression(list, 1)
	end
	list = tokens("(12 + 7) * (3 + 4 * 5) + 6 * (7 + 8) * 9 + (((1 + 2) * 3) + 4) * 5")
end
