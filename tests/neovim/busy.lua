-- A plugin at work: Lua called by nvim, and by nvim once more from within Lua.
local function crunch(seed)
	local words = {}
	for i = 1, 200 do
		words[i] = tostring(i * seed)
	end
	return #table.concat(words, " ")
end

function on_command()
	return crunch(3)
end

local function edit()
	local lines = {}
	for i = 1, 3 do
		lines[i] = "line " .. crunch(i)
	end
	vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
	vim.api.nvim_command("lua on_command()")
end

io.stdout:write("ready\n")
io.stdout:flush()
local till = os.time() + 30
while os.time() < till do
	edit()
end
-- SPDX-License-Identifier: MIT
