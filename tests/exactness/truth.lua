-- Runs a program twice over: first to learn its stacks, then to be looked at.
--
--	luajit truth.lua PROGRAM on|off ROUNDS [JIT PARAMETER...]
--
-- on, off	the JIT compiler while the program is looked at
-- ROUNDS	how often it is run then; 0: until it is killed
--
-- The truth comes from LuaJIT's own debug library, by a hook at every bytecode
-- instruction: the order of all stacks, with the position that the program had
-- stored. A program is a chunk that returns its body, a function. A line of it
-- that begins with "@" first stores its own number in the position, a slot of a
-- table whose address is printed: whoever looks from outside can read it.
--
-- With TRUTH_HANDLES in the environment, the signal of that number is handled by
-- a function of the C library that does nothing of note.
--
-- Output: "stack" lines, each the next new stack, root first; "event POSITION
-- STACK" lines in the order of time; "call STACK" lines, each a stack on whose
-- top a builtin has been called; at last "ready ADDRESS". Then a line of input is
-- awaited.

local name, jit_mode, rounds = arg[1], arg[2], tonumber(arg[3])
local position = { 0 }
local learning = false
local hook	-- the program's own
local observe

local handled = tonumber(os.getenv("TRUTH_HANDLES"))
if handled then
	local ffi = require("ffi")
	ffi.cdef("void *signal(int number, void *handler); int abs(int);")
	ffi.C.signal(handled, ffi.cast("void *", ffi.C.abs))
end

local function read(path)
	local file = assert(io.open(path))
	local text = file:read("*a")
	file:close()
	return text
end

local function number_lines(source)
	local number = 0
	return (source:gsub("[^\n]*\n", function(line)
		number = number + 1
		return (line:gsub("^(%s*)@ ", "%1position[1] = " .. number .. "; "))
	end))
end

---- Learning

-- By their text, which is the same for all functions of one builtin, as of all that wrap() returns.
local names = {}

local function name_all(functions)
	for name, member in pairs(functions) do
		if type(name) == "string" and type(member) == "function" then
			names[tostring(member)] = name
		end
	end
end

local function name_builtins()
	for _, library in pairs(package.loaded) do
		if type(library) == "table" then
			name_all(library)
		end
	end
	name_all({ wrap = coroutine.wrap(print), gmatch = string.gmatch("", ""), ipairs = ipairs({}) })
	name_all(getmetatable(io.stdout))
	if package.loaded.ffi then
		name_all(debug.getmetatable(package.loaded.ffi.new("int[1]")))
	end
end

local function frame_text(info)
	if info.what == "C" or info.linedefined < 0 then	-- some are written in Lua
		return "[" .. (names[tostring(info.func)] or "?") .. "]"
	end
	local source = info.source:gsub("^@", "")
	return ("%s:%d:%d"):format(source, info.linedefined, info.currentline)
end

-- Level 1 is the function that calls frames_of().
local function info_at(thread, level)
	local info
	if thread then
		info = debug.getinfo(thread, level, "Slf")
	else
		info = debug.getinfo(level + 2, "Slf")
	end
	return info	-- no tail call: it would not be a level
end

-- The frames of a coroutine that waits, or of what runs, from this level on; root first.
local function frames_of(thread, level)
	local frames = {}
	local info = info_at(thread, level)
	while info do
		if info.func ~= observe then	-- which calls the program's hook
			table.insert(frames, 1, frame_text(info))
		end
		level = level + 1
		info = info_at(thread, level)
	end
	return frames
end

-- A coroutine stands on the stack of whoever resumed it.
local parents = setmetatable({}, { __mode = "k" })
local last, last_stack = "main", ""

-- The main coroutine is nil to some builds, and told apart by a second result of others.
local function running()
	local thread, is_main = coroutine.running()
	return not is_main and thread or "main"
end

local function stack_text(level)
	local thread = running()
	if thread ~= last and thread ~= "main" and
	   (last == "main" or coroutine.status(last) == "normal") then
		local below = last == "main" and { last_stack } or frames_of(last, 0)
		if parents[last] then
			table.insert(below, 1, parents[last])
		end
		parents[thread] = table.concat(below, ";")
	end
	local frames = frames_of(nil, level)
	if parents[thread] and thread ~= "main" then
		table.insert(frames, 1, parents[thread])
	end
	last, last_stack = thread, table.concat(frames, ";")
	return last_stack
end

local numbers, stacks, events, calls = {}, {}, {}, {}

local function number_of(text)
	if not numbers[text] then
		stacks[#stacks + 1] = text
		numbers[text] = #stacks
	end
	return numbers[text]
end

local function log(text)
	local event = position[1] .. " " .. number_of(text)
	if event ~= events[#events] then
		events[#events + 1] = event
	end
end

function observe(event)
	local text = stack_text(3)
	if event == "call" then
		if text:sub(-1) == "]" then
			calls[number_of(text)] = true
		end
		return
	end
	log(text)
	if hook and event == "line" then
		hook()
	end
end

-- Where no hook is called, in finalizers and hooks, a program tells its position by calling this.
local here_frame
local function here() if learning then local text = stack_text(3); log(text); log(text .. here_frame); log(text) end end
here_frame = (";%s:%d:%d"):format("truth.lua", debug.getinfo(here).linedefined, debug.getinfo(here).linedefined)

-- A hook of the program's own, at each line; none for nil. Both ends are the same tail call.
local set = debug.sethook
local function sethook(own) if learning then hook = own return set(observe, "cl", 1) else return set(own, own and "l") end end

---- Running

local environment = setmetatable({ position = position, here = here, sethook = sethook }, { __index = _G })
local source = number_lines(read("programs/" .. name .. ".lua"))
local body = setfenv(assert(loadstring("local position, here = position, here; " .. source,
				       "@" .. name .. ".lua")), environment)()

local function run()
	position[1] = 1
	body()
	position[1] = 2
end

local function learn()
	name_builtins()
	jit.off()
	learning = true
	debug.sethook(observe, "cl", 1)
end

local function tell()
	debug.sethook()
	learning = false
	for _, text in ipairs(stacks) do
		io.write("stack ", text, "\n")
	end
	for _, event in ipairs(events) do
		io.write("event ", event, "\n")
	end
	for number in pairs(calls) do
		io.write("call ", number, "\n")
	end
	stacks, events, numbers, calls = nil, nil, nil, nil
	if jit_mode == "on" then
		jit.on()
		if arg[4] then
			jit.opt.start(unpack(arg, 4))
		end
		local sum = 0
		for i = 1, 1000 do	-- what a trace looks like is learnt from a trace
			sum = sum + i
		end
	end
	collectgarbage()
	position[1] = 0
	io.write("ready ", tostring(position):match("0x%x+"), "\n")
	io.flush()
	io.read()
end

local phases = {
	{ before = learn, rounds = 2, after = tell },
	{ before = function() end, rounds = rounds == 0 and math.huge or rounds, after = os.exit },
}
for _, phase in ipairs(phases) do
	phase.before()
	local round = 0
	while round < phase.rounds do
		run()
		round = round + 1
	end
	phase.after()
end
-- SPDX-License-Identifier: MIT
