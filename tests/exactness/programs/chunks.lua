-- Chunks that are compiled while the program runs.
local pieces = { "local a = ...\n", "local b = a\n", "return b" }

local function pieces_reader()
	@ local at = 0
	@ return function()
		@ at = at + 1
		@ return pieces[at]
	end
end

local function dumped(f)
	local x = f(1)  -- tostring
	return x
end

local function calls(f)
	@ local x = f(1)
	@ return x
end

return function()
	@ local chunk = loadstring("local a = ...\nlocal b = a\nreturn b", "@first.lua")
	@ calls(chunk)
	@ chunk = load(pieces_reader(), "@second.lua")
	@ calls(chunk)
	@ local none = loadstring("this is no chunk", "@third.lua")
	@ chunk = loadstring(string.dump(dumped), "@fourth.lua")
	@ chunk(tostring)
end
-- SPDX-License-Identifier: MIT
