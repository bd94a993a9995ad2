-- SPDX-License-Identifier: MIT
-- Writes each word of a log with a system call of its own.
local log = io.open("/dev/null", "w")
log:setvbuf("no")

local function note(words)
	for i = 1, #words do
		log:write(words[i], " ") -- fault
	end
end

local words = {}
for i = 1, 100 do
	words[i] = "word" .. i
end
print("ready")
io.stdout:flush()
while true do
	note(words)
end
