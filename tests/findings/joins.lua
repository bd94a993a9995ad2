-- SPDX-License-Identifier: MIT
-- A page is made by joining each row to all that there is: every round copies the page.
local function render(rows)
	local page = ""
	for i = 1, rows do
		page = page .. "<li>" .. i .. "</li>" -- fault
	end
	return page
end

print("ready")
io.stdout:flush()
while true do
	render(4000)
end
