-- What `make demo` profiles: a small program of the everyday kind. It keeps a
-- log of requests as JSON, reads it back, ranks the slowest and prints a report,
-- over and over.
--
--	luajit demo.lua [SECONDS]

local seconds = tonumber(arg[1]) or 10

-- JSON ------------------------------------------------------------------------

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t" }

local encode

local function encode_string(text)
	return '"' .. text:gsub('["\\\n\t]', escapes) .. '"'
end

local function encode_array(array)
	local parts = {}
	for i, value in ipairs(array) do
		parts[i] = encode(value)
	end
	return "[" .. table.concat(parts, ",") .. "]"
end

local function encode_object(object)
	local parts = {}
	for key, value in pairs(object) do
		parts[#parts + 1] = encode_string(key) .. ":" .. encode(value)
	end
	table.sort(parts)
	return "{" .. table.concat(parts, ",") .. "}"
end

function encode(value)
	if type(value) == "string" then
		return encode_string(value)
	elseif type(value) ~= "table" then
		return tostring(value)
	elseif value[1] ~= nil then
		return encode_array(value)
	end
	return encode_object(value)
end

local decode_value

local function skip_space(text, at)
	return text:find("[^ \n\t]", at) or #text + 1
end

local function decode_string(text, at)
	local last = at
	repeat
		last = text:find('"', last + 1, true)
	until text:byte(last - 1) ~= 92 -- a backslash
	return text:sub(at + 1, last - 1):gsub("\\(.)", { n = "\n", t = "\t" }), last + 1
end

local function decode_number(text, at)
	local _, last = text:find("^-?[%d.]+[eE]?[+-]?%d*", at)
	return tonumber(text:sub(at, last)), last + 1
end

local function decode_array(text, at)
	local array = {}
	at = skip_space(text, at + 1)
	while text:sub(at, at) ~= "]" do
		array[#array + 1], at = decode_value(text, at)
		at = skip_space(text, at)
		if text:sub(at, at) == "," then
			at = skip_space(text, at + 1)
		end
	end
	return array, at + 1
end

local function decode_object(text, at)
	local object = {}
	at = skip_space(text, at + 1)
	while text:sub(at, at) ~= "}" do
		local key, colon = decode_string(text, at)
		object[key], at = decode_value(text, skip_space(text, colon + 1))
		at = skip_space(text, at)
		if text:sub(at, at) == "," then
			at = skip_space(text, at + 1)
		end
	end
	return object, at + 1
end

local decoders = { ["{"] = decode_object, ["["] = decode_array, ['"'] = decode_string }

function decode_value(text, at)
	local decoder = decoders[text:sub(at, at)] or decode_number
	local value, after = decoder(text, at)
	return value, after
end

-- The program -----------------------------------------------------------------

local Request = {}
Request.__index = Request

function Request.new(id)
	local path = ("/shop/%s/%d"):format(id % 3 == 0 and "cart" or "item", id % 100)
	return setmetatable({ id = id, path = path, milliseconds = (id * 7919) % 997 / 10, tags = { "web", "eu" } }, Request)
end

function Request.__lt(a, b)
	return a.milliseconds > b.milliseconds
end

local function simulate(count)
	local requests = {}
	for id = 1, count do
		requests[id] = Request.new(id)
	end
	return requests
end

local function read_log(text)
	local requests = decode_value(text, 1)
	for _, request in ipairs(requests) do
		setmetatable(request, Request)
	end
	return requests
end

local function report(requests)
	local lines = coroutine.wrap(function()
		for rank = 1, 20 do
			local request = requests[rank]
			coroutine.yield(("%3d. %-20s %6.1f ms"):format(rank, request.path, request.milliseconds))
		end
	end)
	local text = ""
	for line in lines do
		text = text .. line .. "\n"
	end
	return text
end

local function serve_round()
	local log = encode(simulate(300))
	local requests = read_log(log)
	table.sort(requests)
	return report(requests)
end

local text
local finish = os.clock() + seconds
while os.clock() < finish do
	text = serve_round()
end
io.write(text)
-- SPDX-License-Identifier: MIT
