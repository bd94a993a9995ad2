-- Loaded by chunks.lua, as a file, a module and a function.
local function inside() -- @inside
	return (spin())
end

inside()
spin()
-- SPDX-License-Identifier: MIT
