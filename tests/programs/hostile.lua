-- Names chosen to break whatever prints them: each stays one frame of one line.
-- no-testimony: the names are printed as they are
-- stack: main /main chunk.*/! (/evil.* harness.lua:\d+/!)?
local harness_spin, ready = dofile("harness.lua")

local evil = "evil;name\n\r\t\27[31m\27]0;title\7<b>&amp;\"'\\ \255\xc3\xa9 \xe2\x80\xae"
local source = ([[
local evil = { [NAME] = ... }
for i = 1, 50 do evil[NAME]() end
]]):gsub("NAME", function() return ("%q"):format(evil):gsub("\r", "\\r"):gsub("\27", "\\27") end)

local chunks = {}
for i, name in ipairs {
	"=" .. evil,
	"@" .. evil,
	evil .. " = 1",
	"=",
	"@",
	"= ",
	"=" .. ("long;"):rep(200000),
	"@/" .. ("deep/"):rep(200000),
	"=[string \"",
	"=%s%n%p",
	"=\xff\xfe",
} do
	chunks[i] = loadstring(source, name)
end

local finish = ready()
while os.clock() < finish do
	for i = 1, #chunks do
		chunks[i](harness_spin)
	end
end
-- SPDX-License-Identifier: MIT
