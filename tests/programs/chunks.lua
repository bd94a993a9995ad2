-- Chunks under every kind of name, from every loader.
-- stack: main main{label} (inside{label:2} spin | spin)?
-- stack: main main{some/file.lua} (inside{some/file.lua:2} spin | spin)?
-- stack: main /main chunk \[string "local spin = \.\.\..*/ (/inside \[string "local spin = \.\.\..*\]:2/ spin | spin)?
-- stack: main main{content_by_lua(nginx.conf:24)} (inside{content_by_lua(nginx.conf:24):2} spin | spin)?
-- stack: main [dofile]! (main{chunks_file.lua} (inside@chunks_file.lua:inside spin | spin)?)?
-- stack: main [require]! (main{./chunks_file.lua} (/inside \.?\/?chunks_file.lua:\d+/ spin | spin)?)?
-- stack: main main{chunks_file.lua} (inside@chunks_file.lua:inside spin | spin)?
-- stack: main ([loadstring]! | [load]! | [loadfile]!)
local ready
spin, ready = dofile("harness.lua")

local source = [[
local spin = ...
local function inside()
	spin() return 1
end
inside()
spin()
]]

local named = loadstring(source, "=label")
local file = loadstring(source, "@some/file.lua")
local unnamed = loadstring(source)
local nginx = load(source, "=content_by_lua(nginx.conf:24)")
local chunk = loadfile("chunks_file.lua")

local finish = ready()
while os.clock() < finish do
	named(spin)
	file(spin)
	unnamed(spin)
	nginx(spin)
	chunk()
	dofile("chunks_file.lua")
	package.loaded.chunks_file = nil
	require("chunks_file")
	loadstring(source, "=compiled")
end
-- SPDX-License-Identifier: MIT
