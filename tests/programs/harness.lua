-- What the programs beside this file share.
--
--	luajit PROGRAM.lua on|off SECONDS [task]
--
-- on, off	the JIT compiler
-- SECONDS	of CPU time; the program then ends by itself
-- task		nothing: just run.
--		"testify": print the stack at every 1009th instruction, as the debug
--		library sees it, in ljspy's words.
--		"park": when a spin's stack is a new one, print it and a traceback,
--		then wait for a line of input.
--
-- Each program says "ready" once its set-up is done, so that a recording which
-- starts then sees nothing but the stacks that the program lists. How those
-- lists read is described in ../stacks.py.

local jit_mode, seconds, task = arg[1], tonumber(arg[2]), arg[3]
if jit_mode == "off" or task then
	jit.off()
end

-- Builtins have no name of their own: call them what the library calls them.
local function builtin_names()
	local names = {}
	for library, members in pairs(package.loaded) do
		for key, member in pairs(type(members) == "table" and members or {}) do
			if type(key) == "string" and type(member) == "function" then
				names[member] = library == "_G" and key or library .. "." .. key
			end
		end
	end
	return names
end

local names = builtin_names()

local function frame_text(info)
	if info.what == "main" then
		return "main chunk " .. info.short_src
	elseif info.what == "C" then
		return names[info.func] and names[info.func] .. " [builtin]" or "native [C]"
	elseif info.short_src:find("^%[builtin:") then
		return names[info.func] .. " [builtin]"
	end
	local place = info.short_src
	if info.linedefined ~= 0 then -- else it is stripped
		place = place .. ":" .. info.linedefined
	end
	return info.name and info.name ~= "" and info.name .. " " .. place or "function <" .. place .. ">"
end

local finish

-- A coroutine sees only its own frames: "..." stands for those below.
local function stack_text(level)
	local frames = {}
	local info = debug.getinfo(level, "nSf")
	while info do
		frames[#frames + 1] = frame_text(info)
		level = level + 1
		info = debug.getinfo(level, "nSf")
	end
	if not frames[#frames]:find("^native") then
		frames[#frames + 1] = "..."
	end
	for i = 1, math.floor(#frames / 2) do
		local j = #frames + 1 - i
		frames[i], frames[j] = frames[j], frames[i]
	end
	return table.concat(frames, ";")
end

local function testify()
	io.write(stack_text(3), "\n")
	if os.clock() > finish then
		os.exit()
	end
end

-- Long enough that most samples hit it, short enough that calls and returns,
-- where LuaJIT's own fields disagree with each other, are hit as well.
local function spin(count) -- @spin
	local sum = 0
	for i = 1, count or 300 do
		sum = sum + i % 7
	end
	return sum
end

-- While parked, nothing of the program's own may happen: no hook, no finalizer.
-- The collector stays stopped, for starting it inside a finalizer would nest
-- them; a program that wants finalizers steps it.
if task == "park" then
	local busy, seen = spin, {}

	function spin(count) -- @park
		collectgarbage("stop")
		local hook, mask, interval = debug.gethook()
		debug.sethook()
		local stack = stack_text(3)
		if not seen[stack] then
			seen[stack] = true
			io.write(stack, "\n")
			io.write(debug.traceback("parked"), "\n\n"); io.flush(); io.read()
		end
		debug.sethook(hook, mask, interval)
		return busy(count)
	end
end

local function ready()
	io.write("ready\n")
	io.flush()
	finish = os.clock() + seconds
	if task == "testify" then
		debug.sethook(testify, "", 1009)
	end
	return finish
end

return spin, ready
-- SPDX-License-Identifier: MIT
