-- Spends its time in native code without unwind tables, which foo() calls; args:
-- on|off SECONDS KIND [LIBRARY]. KIND is what it calls:
--   ffi:NAME       a function of LIBRARY (assembly.S), through the FFI
--   c:NAME         the same as a lua_CFunction
--   made:NAME      machine code that is made here: NAME is a key of CODE
--   file:NAME      the same in a file that is mapped
--   pcre, pcre2    a pattern that PCRE's JIT has compiled
local ffi = require("ffi")
if arg[1] == "off" then
	jit.off()
end

ffi.cdef([[
	void *mmap(void *, size_t, int, int, int, long);
	int memfd_create(const char *, unsigned int), ftruncate(int, long);
	int walk(void *), guard(void *), hide(void *);

	typedef struct pcre pcre;
	typedef struct pcre_extra pcre_extra;
	pcre *pcre_compile(const char *, int, const char **, int *, const unsigned char *);
	pcre_extra *pcre_study(const pcre *, int, const char **);
	int pcre_exec(const pcre *, const pcre_extra *, const char *, int, int, int, int *, int);

	void *pcre2_compile_8(const char *, size_t, uint32_t, int *, size_t *, void *);
	int pcre2_jit_compile_8(void *, uint32_t);
	void *pcre2_match_data_create_8(uint32_t, void *);
	int pcre2_match_8(const void *, const char *, size_t, size_t, uint32_t, void *, void *);
]])

-- Each counts to 200,000 with its caller's registers on the stack.
local COUNT = "\49\219\49\237" .. "\255\195\129\251\64\13\3\0\117\246" -- xor ebx, ebx; xor ebp, ebp; inc ebx; cmp; jne
local CODE = {
	-- push rbp; push rbx; sub rsp, 24; ...; add rsp, 24; pop rbx; pop rbp; ret
	walk = "\85\83\72\131\236\24" .. COUNT .. "\72\131\196\24\91\93\195",
	-- push rbp; push rbx; ...; pop rbx; pop rbp; pop rdx; not rdx; not rdx; jmp rdx
	hide = "\85\83" .. COUNT .. "\91\93\90\72\247\210\72\247\210\255\226",
}

local function make(code, file)
	local READ_WRITE_EXEC, SHARED, PRIVATE_ANONYMOUS = 7, 1, 0x22
	if file then
		ffi.C.ftruncate(file, 4096)
	end
	local flags = file and SHARED or PRIVATE_ANONYMOUS
	local at = ffi.C.mmap(nil, 4096, READ_WRITE_EXEC, flags, file or -1, 0)
	ffi.copy(at, code, #code)
	return ffi.cast("int (*)(void *)", at)
end

-- Neither matches; the second goes back over all that it has tried.
local TEXT = ("key=value; "):rep(200) .. "end"
local PATTERN = [[(\w+=\w+; )*\bq?(?i:X|\1)y]]

local function pcre()
	local lib = ffi.load("pcre.so.3")
	local message, number = ffi.new("const char *[1]"), ffi.new("int[1]")
	local compiled = lib.pcre_compile(PATTERN, 0, message, number, nil)
	local studied, found = lib.pcre_study(compiled, 1, message), ffi.new("int[30]")
	return function()
		return lib.pcre_exec(compiled, studied, TEXT, #TEXT, 0, 0, found, 30)
	end
end

local function pcre2()
	local lib = ffi.load("pcre2-8.so.0")
	local number, offset = ffi.new("int[1]"), ffi.new("size_t[1]")
	local compiled = lib.pcre2_compile_8(PATTERN, #PATTERN, 0, number, offset, nil)
	assert(lib.pcre2_jit_compile_8(compiled, 1) == 0)
	local found = lib.pcre2_match_data_create_8(30, nil)
	return function()
		return lib.pcre2_match_8(compiled, TEXT, #TEXT, 0, 0, found, nil)
	end
end

local kind, name = arg[3]:match("^(%w+):?(%w*)$")
local call
if kind:find("pcre") and not pcall(({ pcre = pcre, pcre2 = pcre2 })[kind]) then
	print("no " .. kind)
	os.exit()
end
if kind == "ffi" then
	local lib = ffi.load(arg[4])
	local called = lib[name]
	call = function()
		return called(nil)
	end
elseif kind == "c" then
	call = assert(package.loadlib(arg[4], name))
elseif kind == "made" or kind == "file" then
	local called = make(CODE[name], kind == "file" and ffi.C.memfd_create("made", 0) or nil)
	call = function()
		return called(nil)
	end
else
	call = ({ pcre = pcre, pcre2 = pcre2 })[kind]()
end

local function foo() -- @foo
	for _ = 1, 1000 do
		call() -- @call
	end
end

local function bar() -- @bar
	foo() -- @bar_call
end

io.write("ready\n")
io.flush()
local finish = os.time() + tonumber(arg[2])
while os.time() < finish do
	bar()
end
-- SPDX-License-Identifier: MIT
