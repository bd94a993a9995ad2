-- SPDX-License-Identifier: MIT
-- Compiles the source of a template for each page.
local template = {}
for i = 1, 60 do
	template[i] = ("out[%d] = (data.name or 'nobody') .. %d"):format(i, i)
end
template = "local out, data = {}, ... " .. table.concat(template, " ") .. " return table.concat(out)"

local function render(data)
	return loadstring(template)(data) -- fault
end

print("ready")
io.stdout:flush()
while true do
	render({ name = "you" })
end
