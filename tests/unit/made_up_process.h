/* SPDX-License-Identifier: MIT */
/*
 * made_up_process: a process whose frames a namer names: its modules, symbols, VMs and Lua functions.
 */
#ifndef LJSPY_MADE_UP_PROCESS_H
#define LJSPY_MADE_UP_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/instead_of.h"
#include "unwind/lua/builtins.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"
#include "unwind/lua/package_path.h"
#include "unwind/names/namer.h"
#include "unwind/vm/vm_names.h"

enum {
	APP = 0x100000, /* a program with LuaJIT in it */
	VM = APP + 0x10000,
	VM_BYTES = 0x1000,
	FFI_CALL = VM + VM_BYTES,
	LIBRARY = 0x300000, /* libluajit */
	LIBRARY_VM = LIBRARY + 0x10000,
	LIBM = 0x400000,
	LIBC = 0x500000,
	MADE = 0x600000, /* code that was made at run time, through a file */
	MODULE_BYTES = 0x40000,
	NOWHERE = 0x900000,
	G = 0x1000,
	OTHER_G = 0x2000, /* of the same VM */
	LIBRARY_G = 0x3000,
	FFID_FLOOR = 70, /* a builtin that tables of the library hold */
	FFID_NAMELESS = 77,
	LIBRARIES_MAX = 64,
	STACK_MAX = 32,
};

static struct vm_code vm = {
	.begin = VM, .end = VM + VM_BYTES, .ffi_call = FFI_CALL, .ffi_call_end = FFI_CALL + 0x100
};
static struct vm_code library_vm = { .begin = LIBRARY_VM, .end = LIBRARY_VM + VM_BYTES };

/*---- What the process has ----*/

static const struct {
	uint64_t address;
	const char *name, *file;
	uint32_t line;
} known_symbols[] = {
	{ LIBM + 0x10, "sqrt", "", 0 },
	{ APP + 0x10, "inner", "app.c", 12 },
	{ APP + 0x10, "outer", "app.c", 34 },
	{ APP + 0x20, "l_read", "", 0 },
	{ APP + 0x30, "lua_pcall", "", 0 },
	{ APP + 0x40, "luaL_openlibs", "", 0 },
	{ APP + 0x50, "luaopen_base", "", 0 },
	{ APP + 0x60, "lj_tab_resize", "", 0 },
	{ APP + 0x70, "lj_tab_newkey", "", 0 },
	{ APP + 0x80, "lj_str_new", "", 0 },
	{ APP + 0x90, "main", "", 0 },
	{ APP + 0xa0, "__libc_start_main", "", 0 },
	{ APP + 0xb0, "lj_mem_realloc", "", 0 },
	{ APP + 0xb0, "lj_tab_resize", "", 0 }, /* which it is inlined into */
	{ LIBC + 0x10, "memcpy", "", 0 },
	{ LIBRARY + 0x10, "luaL_checklstring", "", 0 },
	{ LIBRARY + 0x20, "anything", "", 0 },
	{ VM + 0x100, "lj_BC_ADDVV", "", 0 },
};
static unsigned int symbols_asked;

INSTEAD_OF(symbols_find);
size_t __wrap_symbols_find(struct symbols *symbols, uint64_t address,
			   struct symbol ret_symbols[static SYMBOL_INLINES_MAX])
{
	size_t count = 0;

	(void)symbols;
	symbols_asked++;
	for (size_t i = 0; i < sizeof(known_symbols) / sizeof(known_symbols[0]); i++) {
		if (known_symbols[i].address != address)
			continue;
		snprintf(ret_symbols[count].name, SYMBOL_NAME_SIZE, "%s", known_symbols[i].name);
		snprintf(ret_symbols[count].file, SYMBOL_NAME_SIZE, "%s", known_symbols[i].file);
		ret_symbols[count++].line = known_symbols[i].line;
	}
	return count;
}

INSTEAD_OF(symbols_function_start);
bool __wrap_symbols_function_start(struct symbols *symbols, uint64_t address, uint64_t *ret_start)
{
	(void)symbols;
	if (address < LIBM + 0x1000 || address >= LIBM + 0x1100)
		return false;
	*ret_start = LIBM + 0x1000;
	return true;
}

/* Names of builtins, of C functions that modules offer, and of the interpreter's code. */
static unsigned int libraries_read;
static bool library_is_empty, handlers_are_hidden;

INSTEAD_OF(builtins_collect);
void __wrap_builtins_collect(struct memory *memory, const struct layout *layout, uint64_t g,
			     struct builtins *ret_builtins)
{
	(void)memory;
	(void)layout;
	(void)g;
	libraries_read++;
	*ret_builtins = (struct builtins){ 0 };
	if (!library_is_empty)
		snprintf(ret_builtins->at[FFID_FLOOR].name, BUILTIN_NAME_SIZE, "math.floor");
}

INSTEAD_OF(builtins_offered);
const char *__wrap_builtins_offered(const struct builtins *builtins, uint64_t code)
{
	if (!builtins->at[FFID_FLOOR].name[0])
		return NULL;
	switch (code) {
	case APP + 0x500: return "require";
	case APP + 0x508: return "module";
	case APP + 0x510: return "package.loadlib";
	case APP + 0x518: return "packages";
	case APP + 0x520: return "cjson.encode";
	case LIBM + 0x500: return "require";
	case APP + 0x600: return "table.foreach";
	default: return NULL;
	}
}

INSTEAD_OF(vm_names_collect);
bool __wrap_vm_names_collect(struct memory *memory, const struct vm_code *of, uint64_t g,
			     const struct builtins *builtins, struct vm_names *ret_names)
{
	(void)memory;
	(void)g;
	(void)builtins;
	*ret_names = (struct vm_names){ .at = calloc(1, sizeof(*ret_names->at)) };
	if (!ret_names->at)
		return false;
	ret_names->count = 1;
	ret_names->at[0] = (struct vm_name){ of->begin, of->begin + 0x10, "lj_BC_ISLT" };
	if (handlers_are_hidden)
		ret_names->at[0].end = of->begin + 8;
	return !handlers_are_hidden;
}

INSTEAD_OF(vm_names_complete);
bool __wrap_vm_names_complete(struct memory *memory, const struct vm_code *of, uint64_t g,
			      const struct builtins *builtins, struct vm_names *names)
{
	if (handlers_are_hidden)
		return false;
	vm_names_clear(names);
	return __wrap_vm_names_collect(memory, of, g, builtins, names);
}

INSTEAD_OF(package_path_read);
static unsigned int paths_read;
void __wrap_package_path_read(struct memory *memory, const struct layout *layout, uint64_t g,
			      struct package_path *path)
{
	(void)memory;
	(void)layout;
	paths_read++;
	free(path->text);
	path->text = strdup(g == OTHER_G ? "/opt/?.lua" : "/srv/app/?.lua");
}

static const char *called; /* by its caller */

INSTEAD_OF(lua_call_name);
bool __wrap_lua_call_name(struct memory *memory, const struct layout *layout, const struct proto *caller,
			  uint64_t pc, char ret_name[static LUA_NAME_SIZE])
{
	(void)memory;
	(void)layout;
	assert_int_equal(pc, caller->bc);
	if (called)
		snprintf(ret_name, LUA_NAME_SIZE, "%s", called);
	return called != NULL;
}

/* Nothing else is read of it. */
static inline void read_nothing(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++)
		ranges[i].status = MEMORY_UNMAPPED;
}

static struct memory live = { .read_ranges = read_nothing };

enum { INSTRUCTIONS = 4, BC_AT = 0x20 };

/* Of prototypes without lines. */
static const uint8_t proto_bytes[BC_AT + INSTRUCTIONS * BYTECODE_SIZE];
static struct proto caller, lua, chunk, in_lua;

static inline struct proto make_proto(uint64_t address, uint64_t serial, uint32_t firstline,
				      const char *chunkname)
{
	return (struct proto){ .address = address,
			       .serial = serial,
			       .bytes = proto_bytes,
			       .size = sizeof(proto_bytes),
			       .sizebc = INSTRUCTIONS,
			       .firstline = firstline,
			       .numline = 9,
			       .bc = address + BC_AT,
			       .chunkname = (char *)(uintptr_t)chunkname };
}

/*---- The namer ----*/

static struct image *image;
static struct lua_image *lua_image;
static struct functions *functions;
static struct namer *namer;
static struct global_state *global, *other_global, *library_global;

static inline struct module make_module(uint64_t begin, const char *path, const struct vm_code *of)
{
	return (struct module){
		.begin = begin, .end = begin + MODULE_BYTES, .base = begin, .path = strdup(path), .vm = of
	};
}

static inline void make_namer(const struct namer_options *options)
{
	namer_free(namer);
	namer = namer_new(lua_image, &live, NULL, functions, options);
	assert_non_null(namer);
}

static inline int begin(void **state)
{
	const struct namer_options options = { .native = NATIVE_ALL };
	struct module *modules = calloc(5, sizeof(*modules));

	(void)state;
	image = image_new(&live);
	modules[0] = make_module(APP, "/usr/bin/app", &vm);
	modules[1] = make_module(LIBRARY, "/usr/lib/libluajit-5.1.so.2", &library_vm);
	modules[2] = make_module(LIBM, "/lib/libm.so.6", NULL);
	modules[3] = make_module(LIBC, "/lib/libc.so.6", NULL);
	modules[4] = make_module(MADE, "/memfd:code", NULL);
	modules[4].made = true;
	image_set_modules(image, modules, 5);
	lua_image = lua_image_new(image);
	lua_image_add(lua_image, G, &vm);
	lua_image_add(lua_image, OTHER_G, &vm);
	lua_image_add(lua_image, LIBRARY_G, &library_vm);
	global = lua_image_find(lua_image, G);
	other_global = lua_image_find(lua_image, OTHER_G);
	library_global = lua_image_find(lua_image, LIBRARY_G);
	functions = functions_new();
	vm.layout.gc64 = library_vm.layout.gc64 = true;
	vm.layout.bytecode = library_vm.layout.bytecode = BYTECODE_V21;
	caller = make_proto(0x10000, 1, 50, "@caller.lua");
	lua = make_proto(0x20000, 2, 10, "@/srv/app/mod/x.lua");
	chunk = make_proto(0x30000, 3, 0, "@/opt/main.lua");
	chunk.flags = PROTO_VARARG;
	in_lua = make_proto(0x40000, 4, FIRSTLINE_BUILTIN, "table.foreach_");
	called = NULL;
	library_is_empty = handlers_are_hidden = false;
	symbols_asked = libraries_read = paths_read = 0;
	namer = NULL;
	make_namer(&options);
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	namer_free(namer);
	functions_free(functions);
	lua_image_free(lua_image);
	image_free(image);
	return 0;
}

/* Of one that has them: GCproto.lineinfo, and the lines of all instructions but the first. */
static uint8_t lines[BC_AT + INSTRUCTIONS * BYTECODE_SIZE];

static inline void give_lines(struct proto *proto)
{
	const uint64_t lineinfo = proto->address + 8;

	memset(lines, 0, sizeof(lines));
	memcpy(lines, &lineinfo, sizeof(lineinfo));
	for (uint8_t i = 0; i + 1 < INSTRUCTIONS; i++)
		lines[8 + i] = i + 1;
	proto->bytes = lines;
}

static struct merged_frame stack_frames[STACK_MAX];
static size_t stack_count;

/* Add a frame further out. */
static inline struct merged_frame *add(enum merged_kind kind, uint64_t pc)
{
	struct merged_frame *frame = &stack_frames[stack_count++];

	*frame = (struct merged_frame){ .kind = kind, .pc = pc };
	return frame;
}

static inline struct merged_frame *add_lua(const struct proto *proto, uint64_t pc)
{
	struct merged_frame *frame = add(MERGED_LUA, pc);

	frame->proto = proto;
	frame->global = global;
	return frame;
}

static struct function_object c_functions[STACK_MAX];

static inline struct merged_frame *add_c(uint8_t ffid, uint64_t f)
{
	struct function_object *function = &c_functions[stack_count];
	struct merged_frame *frame = add(MERGED_C_FUNCTION, 0);

	*function = (struct function_object){ .ffid = ffid, .f = f };
	frame->function = function;
	frame->global = global;
	return frame;
}

static const struct frame *frames;
static size_t frame_count;

/* Name what was added, and begin another stack. */
static inline size_t name_in(enum vm_state vm_state)
{
	const struct merged_stack stack = {
		.frames = stack_frames, .count = stack_count, .size = STACK_MAX, .vm_state = vm_state
	};

	stack_count = 0;
	assert_int_equal(namer_name(namer, &stack, &frames, &frame_count), 0);
	return frame_count;
}

static inline size_t name(void)
{
	return name_in(VM_STATE_INTERPRETED);
}

static inline void assert_frame(size_t index, enum frame_kind kind, const char *name, const char *module)
{
	const struct function *function;

	assert_true(index < frame_count);
	function = frames[index].function;
	assert_int_equal(function->kind, kind);
	if (!name)
		assert_null(function->name);
	else
		assert_string_equal(function->name ? function->name : "", name);
	if (!module)
		assert_null(function->module);
	else
		assert_string_equal(function->module ? function->module : "", module);
}

#endif
