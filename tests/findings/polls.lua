-- SPDX-License-Identifier: MIT
-- Waits for a moment by asking the clock without a pause.
local function wait(seconds)
	local over = os.clock() + seconds
	while os.clock() < over do -- fault
	end
end

print("ready")
io.stdout:flush()
while true do
	wait(0.05)
end
