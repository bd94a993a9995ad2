-- What host calls. Each line "stack:" lists frames of one stack, root first:
-- C functions of host, LuaJIT's API (lua_*), [builtins], Lua functions by name,
-- or as @TAG where they have none. Frames in parentheses may be missing. Of
-- LuaJIT, all but its API is left out; functions whose last deed is to enter the
-- VM, as lua_call, may have jumped there.
-- stack: main run_call (lua_call) @from_call work
-- stack: main run_call (lua_call) @from_call burn_in_c burn
-- stack: main run_pcall lua_pcall @from_pcall burn_in_c burn
-- stack: main run_cpcall lua_cpcall in_cpcall (lua_call) @from_cpcall work
-- stack: main run_resume (lua_resume) @from_resume burn_in_c burn
-- stack: main run_call (lua_call) @calls_c bounce (lua_call) @bounced burn_in_c burn
-- stack: main run_call (lua_call) @indexes __index work
-- stack: main run_call (lua_call) @indexes_in_c index_it lua_getfield @index burn_in_c burn
-- stack: main run_call lua_getfield
-- stack: main run_pcall lua_getfield
-- stack: main run_cpcall lua_cpcall in_cpcall lua_getfield
-- stack: main run_resume lua_getfield
-- stack: main run_call (lua_call) @finalizes [newproxy]
-- stack: main run_call (lua_call) @finalizes [getmetatable]
-- stack: main run_call (lua_call) @finalizes [collectgarbage] lua_gc
-- stack: main run_call (lua_call) @finalizes [collectgarbage] lua_gc @finalizer work
-- stack: main run_call (lua_call) @finalizes [collectgarbage] lua_gc __gc work
-- stack: main run_call (lua_call) @is_hooked with_hook (lua_call) @hooked work in_hook burn
-- stack: main run_call (lua_call) @is_hooked with_hook (lua_call) @hooked in_hook burn
-- stack: main run_call (lua_call) @is_hooked with_hook lua_sethook
-- stack: main run_call (lua_call) @sorts [table.sort] (lua_call) @compare burn_in_c burn
-- stack: main run_call (lua_call) @substitutes [string.gsub] (lua_call) @replace work
-- stack: main run_call (lua_call) @resumes [coroutine.resume] @body [pcall] @protected [coroutine.resume] @inner burn_in_c burn
-- stack: main run_call (lua_call) @resumes [coroutine.create]
-- stack: main run_call (lua_call) @resumes [coroutine.resume] @body [pcall] @protected [coroutine.create]
-- stack: main run_call (lua_call) @wraps [coroutine.wrap_aux] @wrapped burn_in_c burn
-- stack: main run_call (lua_call) @wraps [coroutine.wrap_aux] @wrapped [coroutine.yield]
-- stack: main run_call (lua_call) @resumes_in_c resume_it (lua_resume) @body_in_c work
-- stack: main run_call (lua_call) @calls_ffi ([ffi.__call]) burn
-- stack: main run_call (lua_call) @calls_ffi [ffi.clib.__index]
-- stack: main run_call (lua_call) @is_called_back [ffi.clib.__index]
-- stack: main run_call (lua_call) @is_called_back ([ffi.__call]) @compare_cdata [ffi.__index]
-- stack: main run_call (lua_call) @is_called_back ([ffi.__call]) @compare_cdata burn_in_c burn
-- stack: main run_call (lua_call) @makes_garbage
-- stack: main run_call (lua_call) @makes_garbage [tostring]
-- stack: main run_call (lua_call) @parses [loadstring] lua_loadx
-- stack: main run_call (lua_call) @compiles [jit.flush]
-- stack: main run_call (lua_call) @compiles
-- stack: main run_call (lua_call) @compiles hot
local ffi = require("ffi")
ffi.cdef [[
void burn(void);
void qsort(void *base, size_t count, size_t size, int (*compare)(const int *, const int *));
]]

local function work()
	local sum = 0
	for i = 1, 3000 do
		sum = sum + i % 7
	end
	return sum
end

function from_call() -- @from_call
	local sum = work()
	burn_in_c()
	return sum
end

function from_pcall() -- @from_pcall
	burn_in_c()
end

function from_cpcall() -- @from_cpcall
	return 1 + work()
end

function from_resume() -- @from_resume
	burn_in_c()
end

local function bounced() -- @bounced
	burn_in_c()
end

function calls_c() -- @calls_c
	bounce(bounced)
end

local indexed = setmetatable({}, { __index = function() return 1 + work() end })

function indexes() -- @indexes
	return indexed.missing
end

local indexed_in_c = setmetatable({}, {
	__index = function() -- @index
		burn_in_c()
	end,
})

function indexes_in_c() -- @indexes_in_c
	index_it(indexed_in_c)
end

local function finalizer() -- @finalizer
	return 1 + work()
end

function finalizes() -- @finalizes
	local proxy = newproxy(true)
	getmetatable(proxy).__gc = finalizer
	proxy = nil
	collectgarbage()
end

local function hooked() -- @hooked
	return 1 + work()
end

function is_hooked() -- @is_hooked
	with_hook(hooked)
end

local function compare(a, b) -- @compare
	burn_in_c()
	return a < b
end

function sorts() -- @sorts
	table.sort({ 3, 1, 2 }, compare)
end

local function replace() -- @replace
	return 1 + work()
end

function substitutes() -- @substitutes
	string.gsub("abc", "%a", replace)
end

local function inner() -- @inner
	burn_in_c()
end

local function protected() -- @protected
	coroutine.resume(coroutine.create(inner))
end

local function body() -- @body
	pcall(protected)
end

function resumes() -- @resumes
	coroutine.resume(coroutine.create(body))
end

local wrapped = coroutine.wrap(function() -- @wrapped
	while true do
		burn_in_c()
		coroutine.yield()
	end
end)

function wraps() -- @wraps
	wrapped()
end

local function body_in_c() -- @body_in_c
	return 1 + work()
end

function resumes_in_c() -- @resumes_in_c
	resume_it(body_in_c)
end

function calls_ffi() -- @calls_ffi
	for _ = 1, 3 do
		ffi.C.burn()
	end
end

local numbers = ffi.new("int[4]", 4, 2, 1, 3)
local compare_cdata = ffi.cast("int (*)(const int *, const int *)", function(a, b) -- @compare_cdata
	burn_in_c()
	return b[0] - a[0]
end)

function is_called_back() -- @is_called_back
	ffi.C.qsort(numbers, 4, 4, compare_cdata)
end
jit.off(is_called_back)

function makes_garbage() -- @makes_garbage
	local all = {}
	for i = 1, 200 do
		all[i] = { i, tostring(i) }
	end
	return all
end

local source = ("local a, b = 1, { x = function(y) return y .. 'z' end }\n"):rep(50)

function parses() -- @parses
	loadstring(source)
end

local function hot()
	local sum = 0
	for i = 1, 100 do
		sum = sum + (i % 3 == 0 and 1 or 2)
	end
	return sum
end

function compiles() -- @compiles
	jit.flush()
	return 1 + hot()
end
-- SPDX-License-Identifier: MIT
