/* SPDX-License-Identifier: MIT */
#include "unwind/names/namer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/page_cache.h"
#include "memory/word_hash.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/builtins.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"
#include "unwind/lua/package_path.h"
#include "unwind/names/fold.h"
#include "unwind/names/vm_work.h"
#include "unwind/symbols/symbols.h"
#include "unwind/trace/trace_ffi.h"
#include "unwind/vm/vm_names.h"

enum {
	CACHE_MAX = 1 << 14, /* entries; a full cache is emptied */
	NAME_SIZE = 512,
	VM_NAMES_TRIES = 256,
	INSERTED_BYTES_MAX = 4 << 20,
	LIBRARIES_MAX = 64, /* enough for all shared names; there may be thousands of states */
};

/* Identifies a frame's function. Zero it first: the hash and comparison include padding. */
struct key {
	uint64_t code;   /* prototype's serial, function's address in memory, or machine code */
	uint64_t caller; /* serial of the calling prototype, 0 if none */
	uint64_t caller_pc;
	uint32_t kind;
	uint32_t detail; /* ffid of a builtin, number of a trace, DETAIL_LATE */
};

/* Of native code that is named once it is shown: a second entry, with the names, under the same key but for this. */
enum { DETAIL_LATE = 1 };

/* A function, and its line if it is native code. */
struct named {
	const struct function *function;
	uint32_t line;
};

struct cached {
	struct key key;
	UT_hash_handle hh;
	enum fold_kind kind;
	const char *work;    /* what these functions do, if they are LuaJIT's (vm_work.h); NULL if unknown */
	struct cached *late; /* if count is 0: the entry DETAIL_LATE, once the code was shown */
	bool is_nameless;    /* of such an entry: it has no name but its place in the module */
	size_t count;
	struct named named[]; /* innermost first; several only for inlined code */
};

/*
 * Names of builtins and VM code in one global_State. global_States of one VM share most of
 * them, so the namer reads only a few global_States.
 */
struct library {
	uint64_t g;
	const struct vm_code *vm;
	struct builtins builtins;
	struct vm_names vm_names;
	unsigned int tries_left; /* attempts left to name all handlers */
	UT_hash_handle hh;
};

/* The package.path of one global_State. */
struct program {
	uint64_t g;
	struct package_path path;
	uint64_t read_for; /* the stack for which path was read last */
	UT_hash_handle hh;
};

struct namer {
	const struct lua_image *lua;
	const struct image *image; /* lua_image_code(lua) */
	struct memory *live;
	struct namer_options options;
	struct functions *functions;
	struct symbols *symbols;
	struct cached *cache;
	struct library *libraries;
	struct program *programs;             /* LIBRARIES_MAX at most */
	struct symbol at[SYMBOL_INLINES_MAX]; /* symbols at the address being named */
	struct frame *frames;
	size_t frame_count, frame_size;
	size_t *merged; /* of each frame: the index of its merged frame */
	size_t merged_size;
	uint64_t stacks;       /* that were named so far */
	size_t inserted_bytes; /* of functions, for namer_insert() */
	/* The names of each frame of the current stack, and of the previous stack. */
	struct cached **names, **last_names;
	size_t last_count;
	uint8_t *kinds, *shown;
	size_t shown_size;
};

struct namer *namer_new(const struct lua_image *lua, struct memory *live, struct symbols *symbols,
			struct functions *functions, const struct namer_options *options)
{
	struct namer *namer = calloc(1, sizeof(*namer));

	if (!namer)
		return NULL;
	namer->lua = lua;
	namer->image = lua_image_code(lua);
	namer->live = live;
	namer->options = *options;
	namer->functions = functions;
	namer->symbols = symbols;
	return namer;
}

void namer_forget_names(struct namer *namer)
{
	namer->last_count = 0;
	HASH_FREE_ALL(namer->cache);
}

static void free_library(struct library *library)
{
	builtins_clear(&library->builtins);
	vm_names_clear(&library->vm_names);
	free(library);
}

static void forget_library(struct namer *namer, struct library *library)
{
	HASH_DEL(namer->libraries, library);
	free_library(library);
}

static void forget_libraries(struct namer *namer)
{
	struct library *library, *next;

	HASH_ITER(hh, namer->libraries, library, next) {
		forget_library(namer, library);
	}
}

static void forget_program(struct namer *namer, struct program *program)
{
	HASH_DEL(namer->programs, program);
	package_path_clear(&program->path);
	free(program);
}

static void forget_programs(struct namer *namer)
{
	struct program *program, *next;

	HASH_ITER(hh, namer->programs, program, next) {
		forget_program(namer, program);
	}
}

void namer_add_roots(const struct namer *namer, char *list, size_t size)
{
	for (const struct program *program = namer->programs; program; program = program->hh.next)
		if (program->path.text)
			package_path_add_roots(program->path.text, list, size);
}

void namer_reset(struct namer *namer)
{
	namer_forget_names(namer);
	forget_libraries(namer);
	forget_programs(namer);
}

void namer_free(struct namer *namer)
{
	if (!namer)
		return;
	namer_reset(namer);
	free(namer->frames);
	free(namer->merged);
	free(namer->names);
	free(namer->last_names);
	free(namer->kinds);
	free(namer->shown);
	free(namer);
}

/*---- Naming one frame ----*/

static bool called_name(struct namer *namer, const struct merged_frame *frame,
			char ret_name[static LUA_NAME_SIZE])
{
	return frame->caller && lua_call_name(namer->live, &frame->global->vm->layout, frame->caller,
					      frame->caller_pc, ret_name);
}

/* Read through a page cache: the library is thousands of small objects close together. */
static void read_library(struct namer *namer, const struct global_state *global, struct library *library)
{
	struct page_cache *cache = page_cache_new(namer->live);
	struct memory *memory = cache ? page_cache_memory(cache) : namer->live;

	builtins_collect(memory, &global->vm->layout, global->g, &library->builtins);
	if (!vm_names_collect(memory, global->vm, global->g, &library->builtins, &library->vm_names))
		library->tries_left = VM_NAMES_TRIES;
	page_cache_free(cache);
}

static const struct library *library_of(struct namer *namer, const struct global_state *global)
{
	struct library *library;

	HASH_FIND(hh, namer->libraries, &global->g, sizeof(global->g), library);
	if (library || HASH_COUNT(namer->libraries) >= LIBRARIES_MAX)
		return library;
	library = calloc(1, sizeof(*library));
	if (!library)
		return NULL;
	library->g = global->g;
	library->vm = global->vm;
	read_library(namer, global, library);
	HASH_ADD(hh, namer->libraries, g, sizeof(library->g), library);
	if (!hash_added(&library->hh)) {
		free_library(library);
		return NULL;
	}
	return library;
}

/* A builtin's name. All global_States of a VM use the same ffids. NULL if none of them has a name. */
static const char *builtin_name(struct namer *namer, const struct global_state *global, uint8_t ffid)
{
	const struct library *library;

	for (library = namer->libraries; library; library = library->hh.next)
		if (library->vm == global->vm && library->builtins.at[ffid].name[0])
			return library->builtins.at[ffid].name;
	library = library_of(namer, global);
	return library && library->builtins.at[ffid].name[0] ? library->builtins.at[ffid].name : NULL;
}

/* The name under which a Lua module exports this C function, in any global_State of the VM; or NULL. */
static const char *offered_name(struct namer *namer, const struct global_state *global, uint64_t f)
{
	const struct library *library;

	for (library = namer->libraries; library; library = library->hh.next) {
		const char *name = library->vm == global->vm ? builtins_offered(&library->builtins, f) : NULL;

		if (name)
			return name;
	}
	library = library_of(namer, global);
	return library ? builtins_offered(&library->builtins, f) : NULL;
}

static bool is_last_of_vm(const struct namer *namer, const struct library *library)
{
	for (const struct library *other = namer->libraries; other; other = other->hh.next)
		if (other != library && other->vm == library->vm)
			return false;
	return true;
}

/* Keep the last library of a VM: its names hold for all of it. Key it by an address that no global_State has. */
void namer_forget_global(struct namer *namer, uint64_t g)
{
	struct library *library;
	struct program *program;

	HASH_FIND(hh, namer->programs, &g, sizeof(g), program);
	if (program)
		forget_program(namer, program);
	HASH_FIND(hh, namer->libraries, &g, sizeof(g), library);
	if (!library)
		return;
	if (!is_last_of_vm(namer, library)) {
		forget_library(namer, library);
		return;
	}
	HASH_DEL(namer->libraries, library);
	library->g = library->vm->begin;
	library->tries_left = 0;
	HASH_ADD(hh, namer->libraries, g, sizeof(library->g), library);
	if (!hash_added(&library->hh))
		free_library(library);
}

/* Use the name in the library's table, else the chunk name, which is the function's name alone. */
static const struct function *name_builtin_in_lua(struct namer *namer, const struct merged_frame *frame)
{
	const struct library *library = library_of(namer, frame->global);
	const char *offered = library ? builtins_offered(&library->builtins, frame->proto->address) : NULL;
	struct function function = {
		.kind = FRAME_BUILTIN,
		.name = offered ? offered : frame->proto->chunkname,
	};

	return functions_intern(namer->functions, &function);
}

/* NULL if there are too many, or memory is short. */
static struct program *program_of(struct namer *namer, uint64_t g)
{
	struct program *program;

	HASH_FIND(hh, namer->programs, &g, sizeof(g), program);
	if (program || HASH_COUNT(namer->programs) >= LIBRARIES_MAX)
		return program;
	program = calloc(1, sizeof(*program));
	if (!program)
		return NULL;
	program->g = g;
	HASH_ADD(hh, namer->programs, g, sizeof(program->g), program);
	if (hash_added(&program->hh))
		return program;
	free(program);
	return NULL;
}

/* The root of a file by the package.path of now, which is read once for all new functions of a stack. */
static uint32_t find_root(struct namer *namer, const struct global_state *global, const char *file)
{
	struct program *program = *file == '@' ? program_of(namer, global->g) : NULL;
	size_t length;

	if (!program)
		return 0;
	if (program->read_for != namer->stacks) {
		package_path_read(namer->live, &global->vm->layout, global->g, &program->path);
		program->read_for = namer->stacks;
	}
	length = program->path.text ? package_path_root(program->path.text, file + 1) : 0;
	return length ? 1 + (uint32_t)length : 0;
}

static const struct function *name_lua(struct namer *namer, const struct merged_frame *frame)
{
	char file[CHUNKNAME_MAX + 16], name[LUA_NAME_SIZE];
	struct function function = {
		.kind = FRAME_LUA,
		.file = file,
		.firstline = frame->proto->firstline,
	};

	if (lua_is_builtin(frame->proto))
		return name_builtin_in_lua(namer, frame);
	lua_chunk_file(frame->proto->chunkname, file);
	if (lua_is_main_chunk(frame->proto))
		function.name = MAIN_CHUNK;
	else if (called_name(namer, frame, name))
		function.name = name;
	function.root = find_root(namer, frame->global, file);
	return functions_intern(namer->functions, &function);
}

/* "libfoo.so+0x1230": name code without a symbol by its function's start, or by its address. */
static void name_by_offset(struct namer *namer, const struct module *module, uint64_t pc,
			   char ret_name[static NAME_SIZE])
{
	uint64_t start = pc;

	symbols_function_start(namer->symbols, pc, &start);
	snprintf(ret_name, NAME_SIZE, "%s+0x%" PRIx64, module_name(module), start - module->base);
}

/* Name native code without a symbol by its name in Lua, or by its address. */
static const struct function *name_uncovered(struct namer *namer, enum frame_kind kind, uint64_t pc,
					     const char *lua_name)
{
	const struct module *module = image_find(namer->image, pc);
	struct function function = { .kind = kind, .name = lua_name };
	char name[NAME_SIZE];

	function.module = module ? module_name(module) : "anon";
	if (!function.name && module && !module->made) {
		name_by_offset(namer, module, pc, name);
		function.name = name;
	} else if (!function.name) {
		/* Generated at run time: its address means nothing to a reader. */
		function.name = "machine code";
	}
	return functions_intern(namer->functions, &function);
}

static const struct function *name_symbol(struct namer *namer, enum frame_kind kind, uint64_t pc,
					  const struct symbol *symbol)
{
	struct function function = {
		.kind = kind,
		.name = symbol->name,
		.file = *symbol->file ? symbol->file : NULL,
		.module = module_name(image_find(namer->image, pc)),
	};

	return functions_intern(namer->functions, &function);
}

/* Name the functions at a native pc. Return how many there are, or 0 when out of memory. */
static size_t name_native(struct namer *namer, uint64_t pc, struct named ret_named[static SYMBOL_INLINES_MAX])
{
	size_t count = symbols_find(namer->symbols, pc, namer->at);

	for (size_t i = 0; i < count; i++) {
		ret_named[i].function = name_symbol(namer, FRAME_NATIVE, pc, &namer->at[i]);
		ret_named[i].line = namer->at[i].line;
		if (!ret_named[i].function)
			return 0;
	}
	if (count)
		return count;
	*ret_named = (struct named){ name_uncovered(namer, FRAME_NATIVE, pc, NULL), 0 };
	return ret_named->function ? 1 : 0;
}

static const struct function *name_builtin(struct namer *namer, const struct merged_frame *frame)
{
	struct function function = {
		.kind = FRAME_BUILTIN,
		.name = builtin_name(namer, frame->global, frame->function->ffid),
	};
	char name[LUA_NAME_SIZE];

	if (!function.name) {
		if (!called_name(namer, frame, name))
			snprintf(name, sizeof(name), "builtin#%u", frame->function->ffid);
		function.name = name;
	}
	return functions_intern(namer->functions, &function);
}

/* LuaJIT implements require, module and the package library as plain C functions (lib_package.c). */
static bool is_luajits_own(const struct namer *namer, uint64_t f, const char *name)
{
	static const char package[] = "package.";
	const struct module *module = image_find(namer->image, f);

	/* Check the name too: a program that LuaJIT is linked into has other functions in this module. */
	return module && module->vm &&
	       (strcmp(name, "require") == 0 || strcmp(name, "module") == 0 ||
		strncmp(name, package, sizeof(package) - 1) == 0);
}

static const struct function *name_c_function(struct namer *namer, const struct merged_frame *frame)
{
	uint64_t f = frame->function->f;
	const char *offered;
	char called[LUA_NAME_SIZE];
	size_t count;

	if (frame->function->ffid != FF_C)
		return name_builtin(namer, frame);
	offered = offered_name(namer, frame->global, f);
	if (offered && is_luajits_own(namer, f, offered)) {
		struct function function = { .kind = FRAME_BUILTIN, .name = offered };

		return functions_intern(namer->functions, &function);
	}
	count = symbols_find(namer->symbols, f, namer->at);
	if (count)
		return name_symbol(namer, FRAME_C_FUNCTION, f, &namer->at[count - 1]);
	if (!offered && called_name(namer, frame, called))
		offered = called;
	return name_uncovered(namer, FRAME_C_FUNCTION, f, offered);
}

/* The work of a function, whose callers do what was found so far. */
static const char *refine_work(const char *found, const char *work)
{
	return work && (!found || vm_work_is_part(work)) ? work : found;
}

/* What the functions at one address do, of which the later ones call the earlier ones. */
static const char *work_at_address(const struct named *named, size_t count)
{
	const char *found = NULL;

	for (size_t i = count; i-- > 0;)
		if (named[i].function->name)
			found = refine_work(found, vm_work_of_function(named[i].function->name));
	return found;
}

/* What the functions from frame "at" to the leaf do; NULL if none of their names tells. */
static const char *work_of_functions(const struct namer *namer, size_t at)
{
	const char *found = NULL;

	for (size_t i = at + 1; i-- > 0;)
		found = refine_work(found, namer->last_names[i]->work);
	return found;
}

/*
 * What frame "at" is called for, by the bytecode instruction of the Lua function below it. NULL
 * if something else calls it, if the instruction does not tell, or if compiled code may be at
 * another one.
 */
static const char *work_of_instruction(const struct merged_stack *stack, size_t at)
{
	size_t below = at + 1;
	const struct merged_frame *frame;
	uint32_t instruction;

	while (below < stack->count &&
	       (stack->frames[below].kind == MERGED_VM || stack->frames[below].kind == MERGED_TRACE))
		below++;
	if (below == stack->count)
		return NULL;
	frame = &stack->frames[below];
	if (frame->kind != MERGED_LUA || frame->pc_is_near ||
	    !proto_instruction(frame->proto, frame->pc, &instruction))
		return NULL;
	return vm_work_of_instruction(bytecode_op(&frame->global->vm->layout, (uint8_t)instruction));
}

/* What LuaJIT does from frame "at" to the leaf; NULL if nothing tells. */
static const char *find_work(const struct namer *namer, const struct merged_stack *stack, size_t at)
{
	const char *work = vm_work_of_state(stack->vm_state);

	if (!work)
		work = work_of_functions(namer, at);
	return work ? work : work_of_instruction(stack, at);
}

/* The frame of LuaJIT's own code that begins at frame "at". */
static const struct function *name_own(struct namer *namer, const struct merged_stack *stack, size_t at)
{
	struct function own = { .kind = FRAME_VM, .name = find_work(namer, stack, at) };

	if (own.name)
		own.kind = FRAME_VM_WORK;
	return functions_intern(namer->functions, &own);
}

/* Retry the handlers without a name. When all have one, forget the frames named without them. */
static void complete_vm_names(struct namer *namer)
{
	struct library *library, *next;

	HASH_ITER(hh, namer->libraries, library, next) {
		const struct global_state *global = lua_image_find(namer->lua, library->g);

		if (library->tries_left == 0 || !global)
			continue;
		library->tries_left--;
		if (vm_names_complete(namer->live, global->vm, global->g, &library->builtins,
				      &library->vm_names)) {
			library->tries_left = 0;
			namer_forget_names(namer);
		}
	}
}

/* A handler's name. Any state on this VM will do: all have the same names. */
static const char *find_vm_name(struct namer *namer, const struct vm_code *vm, uint64_t pc)
{
	const struct library *library;

	for (library = namer->libraries; library; library = library->hh.next)
		if (library->vm == vm && library->vm_names.count)
			return vm_names_find(&library->vm_names, pc);
	for (size_t i = 0; i < lua_image_count(namer->lua); i++) {
		const struct global_state *global = lua_image_global(namer->lua, i);

		if (global->vm != vm)
			continue;
		library = library_of(namer, global);
		if (library && library->vm_names.count)
			return vm_names_find(&library->vm_names, pc);
	}
	return NULL;
}

static const struct function *name_vm(struct namer *namer, uint64_t pc)
{
	struct function function = { .kind = FRAME_VM };
	const struct module *module;

	if (image_classify(namer->image, pc, &module) == CODE_VM_FFI_CALL)
		function.name = "lj_vm_ffi_call";
	else if (symbols_find(namer->symbols, pc, namer->at))
		function.name = namer->at[0].name;
	else if (module && module->vm)
		function.name = find_vm_name(namer, module->vm, pc);
	return functions_intern(namer->functions, &function);
}

/* Name a trace by number and start ("trace#2 test.lua:8"), a side trace also by its root. */
static const struct function *name_trace(struct namer *namer, const struct merged_frame *frame)
{
	const struct trace *trace = frame->trace;
	char file[CHUNKNAME_MAX + 16], name[NAME_SIZE];
	struct function function = { .kind = FRAME_TRACE, .name = name };

	if (trace->root)
		snprintf(name, sizeof(name), "trace#%" PRIu32 " side of #%u", trace->number, trace->root);
	else
		snprintf(name, sizeof(name), "trace#%" PRIu32, trace->number);
	if (frame->proto) {
		lua_chunk_file(frame->proto->chunkname, file);
		function.file = file;
		function.firstline = lua_line(&frame->global->vm->layout, frame->proto, trace->startpc);
		function.root = find_root(namer, frame->global, file);
	}
	return functions_intern(namer->functions, &function);
}

/* The address to look up. For a return address it lies within the call, not after it. */
static uint64_t code_address(const struct merged_frame *frame)
{
	return frame->pc - (frame->is_return_address ? 1 : 0);
}

static struct key key_of(const struct merged_frame *frame)
{
	struct key key;

	memset(&key, 0, sizeof(key));
	key.kind = frame->kind;
	key.caller = frame->caller ? frame->caller->serial : 0;
	key.caller_pc = frame->caller_pc;
	switch (frame->kind) {
	case MERGED_LUA: key.code = frame->proto->serial; break;
	case MERGED_C_FUNCTION:
		key.code = frame->function->ffid == FF_C ? frame->function->f : frame->global->vm->begin;
		key.detail = frame->function->ffid;
		break;
	case MERGED_NATIVE:
	case MERGED_VM: key.code = code_address(frame); break;
	case MERGED_TRACE:
		key.code = frame->trace->startpc;
		key.caller = frame->trace->root;
		key.detail = frame->trace->number;
		break;
	case MERGED_CHILD:
	case MERGED_LOST: key.detail = frame->lost; break;
	}
	return key;
}

/* The frame between a coroutine or light thread and the one that lua-nginx-module runs it for. */
static const struct function *name_child(struct namer *namer)
{
	static const struct function child = {
		.kind = FRAME_NATIVE,
		.name = "child coroutine",
		.module = "lua-nginx-module",
	};

	return functions_intern(namer->functions, &child);
}

static const struct function *name_other(struct namer *namer, const struct merged_frame *frame)
{
	switch (frame->kind) {
	case MERGED_LUA: return name_lua(namer, frame);
	case MERGED_C_FUNCTION: return name_c_function(namer, frame);
	case MERGED_VM: return name_vm(namer, code_address(frame));
	case MERGED_TRACE: return name_trace(namer, frame);
	case MERGED_CHILD: return name_child(namer);
	case MERGED_NATIVE:
	case MERGED_LOST: break;
	}
	return lost_function(frame->lost);
}

/* Return the number of functions, or 0 when out of memory. */
static size_t name_uncached(struct namer *namer, const struct merged_frame *frame,
			    struct named ret_named[static SYMBOL_INLINES_MAX])
{
	if (frame->kind == MERGED_NATIVE)
		return name_native(namer, code_address(frame), ret_named);
	*ret_named = (struct named){ .function = name_other(namer, frame) };
	return ret_named->function ? 1 : 0;
}

static bool has_prefix(const char *string, const char *prefix)
{
	return strncmp(string, prefix, strlen(prefix)) == 0;
}

/* Is the module LuaJIT alone, rather than a program that contains it? */
static bool is_luajit(const struct module *module)
{
	const char *name = module_name(module);

	return has_prefix(name, "libluajit") || has_prefix(name, "luajit");
}

/* Is the module the C library, glibc or musl? */
static bool is_libc(const struct module *module)
{
	const char *name = module_name(module);

	return has_prefix(name, "libc.") || has_prefix(name, "libc-") || has_prefix(name, "ld-musl-");
}

/* Its name is only its place in the module: "libc.so.6+0x9a700". */
static bool is_nameless(const struct function *function, const struct module *module)
{
	return has_prefix(function->name, module_name(module)) &&
	       function->name[strlen(module_name(module))] == '+';
}

static enum fold_kind native_kind(const struct namer *namer, uint64_t pc, const struct function *function)
{
	const struct module *module = image_find(namer->image, pc);

	if (!module)
		return FOLD_NATIVE;
	if (has_prefix(function->name, "__libc_start"))
		return FOLD_LIBC;
	if (!module->vm)
		return FOLD_NATIVE;
	if (is_luajit(module) || has_prefix(function->name, "lj_") || has_prefix(function->name, "lua_") ||
	    has_prefix(function->name, "luaL_") || has_prefix(function->name, "luaopen_"))
		return FOLD_LUAJIT;
	return is_nameless(function, module) ? FOLD_NAMELESS : FOLD_NATIVE;
}

static enum fold_kind fold_kind(const struct namer *namer, const struct merged_frame *frame,
				const struct function *function)
{
	const struct module *module;

	switch (frame->kind) {
	case MERGED_LUA: return FOLD_LUA;
	case MERGED_C_FUNCTION:
		if (function->kind == FRAME_BUILTIN)
			return FOLD_BUILTIN;
		module = image_find(namer->image, frame->function->f);
		return module && is_luajit(module) ? FOLD_OWN_FUNCTION : FOLD_C_FUNCTION;
	case MERGED_NATIVE: return native_kind(namer, code_address(frame), function);
	case MERGED_VM:
		return image_classify(namer->image, code_address(frame), NULL) == CODE_VM_FFI_CALL
			       ? FOLD_FFI_CALL
			       : FOLD_VM;
	case MERGED_TRACE: return namer->options.traces ? FOLD_KEPT : FOLD_LEFT_OUT;
	case MERGED_CHILD:
	case MERGED_LOST: break;
	}
	return FOLD_KEPT;
}

static bool is_in_libc(const struct namer *namer, const struct merged_frame *frame)
{
	const struct module *module = frame->kind == MERGED_NATIVE
					      ? image_find(namer->image, code_address(frame))
					      : NULL;

	return module && is_libc(module);
}

/* NULL when out of memory. */
static struct cached *keep(struct namer *namer, const struct key *key, enum fold_kind kind,
			   const struct named *named, size_t count)
{
	struct cached *cached = calloc(1, sizeof(*cached) + count * sizeof(*named));

	if (!cached)
		return NULL;
	cached->key = *key;
	cached->kind = kind;
	cached->work = work_at_address(named, count);
	cached->count = count;
	for (size_t i = 0; i < count; i++)
		cached->named[i] = named[i];
	HASH_ADD(hh, namer->cache, key, sizeof(cached->key), cached);
	if (!hash_added(&cached->hh)) {
		free(cached);
		return NULL;
	}
	return cached;
}

/*
 * distance counts from the outermost frame. Near it most frames equal those of the
 * previous stack. Comparing those first avoids a hash look-up with its cache misses.
 * NULL when out of memory.
 *
 * Code of the C library has no names yet: each program starts in it, but most of it is hidden, and to
 * read debug info of it takes more than all else in the first second.
 */
static struct cached *name(struct namer *namer, const struct merged_frame *frame, size_t distance)
{
	struct named named[SYMBOL_INLINES_MAX];
	struct key key = key_of(frame);
	struct cached *cached;
	size_t count;

	if (distance < namer->last_count) {
		struct cached *last = namer->last_names[namer->last_count - 1 - distance];

		if (memcmp(&last->key, &key, sizeof(key)) == 0)
			return last;
	}
	HASH_FIND(hh, namer->cache, &key, sizeof(key), cached);
	if (cached)
		return cached;
	if (is_in_libc(namer, frame))
		return keep(namer, &key, FOLD_LIBC, NULL, 0);
	count = name_uncached(namer, frame, named);
	return count ? keep(namer, &key, fold_kind(namer, frame, named[count - 1].function), named, count)
		     : NULL;
}

/* With names, for a frame that is shown. NULL when out of memory. */
static const struct cached *with_names(struct namer *namer, struct cached *cached)
{
	struct named named[SYMBOL_INLINES_MAX];
	const struct module *module;
	struct key key = cached->key;
	size_t count;

	if (cached->count || cached->late)
		return cached->count ? cached : cached->late;
	key.detail = DETAIL_LATE;
	count = name_native(namer, key.code, named);
	cached->late = count ? keep(namer, &key, cached->kind, named, count) : NULL;
	if (!cached->late)
		return NULL;
	module = image_find(namer->image, key.code);
	cached->late->is_nameless = module && is_nameless(named[count - 1].function, module);
	return cached->late;
}

/*---- Which frames are shown ----*/

static bool is_native(const struct merged_frame *frame)
{
	return frame->kind == MERGED_NATIVE || frame->kind == MERGED_VM;
}

static bool name_all(struct namer *namer, const struct merged_stack *stack)
{
	struct cached **names = namer->names;

	for (size_t i = 0; i < stack->count; i++) {
		names[i] = name(namer, &stack->frames[i], stack->count - 1 - i);
		if (!names[i])
			return false;
		namer->kinds[i] = (uint8_t)names[i]->kind;
	}
	namer->names = namer->last_names;
	namer->last_names = names;
	namer->last_count = stack->count;
	return true;
}

/*
 * Hide what a function of the C library calls in the library itself, without a name: since 2.41, glibc makes all
 * system calls that may wait in one such function. False when out of memory.
 */
static bool hide_inner_libc(struct namer *namer, size_t count)
{
	bool in_libc = false;

	for (size_t i = count; i-- > 0;) {
		bool is_libc = namer->kinds[i] == FOLD_LIBC && namer->shown[i] != FOLD_HIDDEN;
		const struct cached *named = is_libc ? with_names(namer, namer->last_names[i]) : NULL;

		if (is_libc && !named)
			return false;
		if (in_libc && named && named->is_nameless)
			namer->shown[i] = FOLD_HIDDEN;
		in_libc = named && (in_libc || !named->is_nameless);
	}
	return true;
}

/* May this frame of a trace have called the one above it through the FFI? */
static bool may_call_by_ffi(const struct merged_frame *frame)
{
	const struct global_state *global = frame->global;

	return frame->is_return_address && frame->trace && global &&
	       trace_may_call_by_ffi(frame->trace, &global->vm->layout,
				     global->traces ? traces_code(global->traces, frame->trace) : NULL,
				     frame->pc);
}

/* Code without a name is the program's, and not LuaJIT's, where Lua has called it through the FFI. */
static void find_called_by_ffi(struct namer *namer, const struct merged_stack *stack)
{
	bool is_by_ffi = false;

	for (size_t i = stack->count; i-- > 0;) {
		const struct merged_frame *frame = &stack->frames[i];
		bool is_called_nameless = i > 0 && namer->kinds[i - 1] == FOLD_NAMELESS;

		if (namer->kinds[i] == FOLD_FFI_CALL)
			is_by_ffi = true;
		else if (frame->kind == MERGED_TRACE)
			is_by_ffi = is_called_nameless && may_call_by_ffi(frame);
		else if (frame->kind != MERGED_NATIVE)
			is_by_ffi = false;
		else if (is_by_ffi && namer->kinds[i] == FOLD_NAMELESS)
			namer->kinds[i] = FOLD_NATIVE;
	}
}

/* Decide how to show each frame. False when out of memory. */
static bool choose(struct namer *namer, const struct merged_stack *stack)
{
	if (!name_all(namer, stack))
		return false;
	if (namer->options.native == NATIVE_FOLD) {
		find_called_by_ffi(namer, stack);
		fold(namer->kinds, stack->count, namer->shown);
		return hide_inner_libc(namer, stack->count);
	}
	for (size_t i = 0; i < stack->count; i++)
		namer->shown[i] = namer->kinds[i] == FOLD_LEFT_OUT || (namer->options.native == NATIVE_NONE &&
								       is_native(&stack->frames[i]))
					  ? FOLD_HIDDEN
					  : FOLD_SHOWN;
	return true;
}

static bool grow_names(struct cached ***names, size_t count)
{
	struct cached **larger = realloc(*names, count * sizeof(struct cached *));

	if (larger)
		*names = larger;
	return larger != NULL;
}

static bool grow_bytes(uint8_t **bytes, size_t count)
{
	uint8_t *larger = realloc(*bytes, count);

	if (larger)
		*bytes = larger;
	return larger != NULL;
}

static bool make_room_for_choice(struct namer *namer, size_t count)
{
	if (count <= namer->shown_size)
		return true;
	if (!grow_names(&namer->names, count) || !grow_names(&namer->last_names, count) ||
	    !grow_bytes(&namer->kinds, count) || !grow_bytes(&namer->shown, count))
		return false;
	namer->shown_size = count;
	return true;
}

static bool add_frame(struct namer *namer, const struct frame *frame, size_t merged_index)
{
	struct frame *frames = array_grow(namer->frames, &namer->frame_size, namer->frame_count + 1,
					  sizeof(*frames));
	size_t *merged;

	if (!frames)
		return false;
	namer->frames = frames;
	merged = array_grow(namer->merged, &namer->merged_size, namer->frame_count + 1, sizeof(*merged));
	if (!merged)
		return false;
	namer->merged = merged;
	namer->merged[namer->frame_count] = merged_index;
	namer->frames[namer->frame_count++] = *frame;
	return true;
}

static void set_position(const struct merged_frame *merged, struct frame *frame)
{
	frame->compiled = merged->compiled;
	if (merged->kind != MERGED_LUA)
		return;
	frame->line = lua_line(&merged->global->vm->layout, merged->proto, merged->pc);
	if (merged->pc == 0)
		frame->certainty = CERTAINTY_FUNCTION;
	else if (merged->pc_is_near)
		frame->certainty = CERTAINTY_NEAREST;
}

static bool add(struct namer *namer, const struct merged_stack *stack, size_t at)
{
	const struct cached *cached = with_names(namer, namer->last_names[at]);

	if (!cached)
		return false;
	for (size_t i = 0; i < cached->count; i++) {
		struct frame frame = {
			.function = cached->named[i].function,
			.line = cached->named[i].line,
			.certainty = CERTAINTY_EXACT,
		};

		set_position(&stack->frames[at], &frame);
		if (!add_frame(namer, &frame, at))
			return false;
	}
	return true;
}

static bool is_own(const struct function *function)
{
	return function->kind == FRAME_VM_WORK || (function->kind == FRAME_VM && !function->name);
}

/* Add a [vm] frame. If the frame before it is one, both are one: frame "at" calls what that one runs. */
static bool add_vm(struct namer *namer, const struct merged_stack *stack, size_t at)
{
	const struct frame frame = {
		.function = name_own(namer, stack, at),
		.certainty = CERTAINTY_EXACT,
	};

	if (!frame.function)
		return false;
	if (namer->frame_count && is_own(namer->frames[namer->frame_count - 1].function))
		namer->frame_count--;
	return add_frame(namer, &frame, at);
}

int namer_name(struct namer *namer, const struct merged_stack *stack, const struct frame **ret_frames,
	       size_t *ret_count)
{
	namer->frame_count = 0;
	namer->stacks++;
	complete_vm_names(namer);
	if (HASH_COUNT(namer->cache) >= CACHE_MAX)
		namer_forget_names(namer);
	if (!make_room_for_choice(namer, stack->count) || !choose(namer, stack))
		return -ENOMEM;
	for (size_t i = 0; i < stack->count; i++) {
		if (namer->shown[i] == FOLD_HIDDEN)
			continue;
		if (!(namer->shown[i] == FOLD_AS_VM ? add_vm(namer, stack, i) : add(namer, stack, i)))
			return -ENOMEM;
	}
	*ret_frames = namer->frames;
	*ret_count = namer->frame_count;
	return 0;
}

size_t namer_merged_index(const struct namer *namer, size_t index)
{
	return namer->merged[index];
}

const struct function *namer_merged_function(const struct namer *namer, size_t index)
{
	static const struct function nameless = { .kind = FRAME_NATIVE };
	const struct cached *cached = namer->last_names[index];

	return cached->count ? cached->named[cached->count - 1].function : &nameless;
}

enum fold_kind namer_merged_kind(const struct namer *namer, size_t index)
{
	return namer->last_names[index]->kind;
}

int namer_insert(struct namer *namer, size_t merged_index, const char *text, const struct frame **ret_frames,
		 size_t *ret_count)
{
	const struct function function = {
		.kind = FRAME_NATIVE,
		.name = namer->inserted_bytes < INSERTED_BYTES_MAX ? text
								   : "[detail left out: there are too many]",
	};
	struct frame added = { .certainty = CERTAINTY_EXACT };
	size_t at = 0, last = namer->frame_count, size = functions_size(namer->functions);

	added.function = functions_intern(namer->functions, &function);
	if (!added.function)
		return -ENOMEM;
	namer->inserted_bytes += functions_size(namer->functions) - size;
	while (at < last && (namer->merged[at] == NAMER_NO_FRAME || namer->merged[at] < merged_index))
		at++;
	if (!add_frame(namer, &added, NAMER_NO_FRAME))
		return -ENOMEM;
	memmove(&namer->frames[at + 1], &namer->frames[at], (last - at) * sizeof(added));
	memmove(&namer->merged[at + 1], &namer->merged[at], (last - at) * sizeof(namer->merged[0]));
	namer->frames[at] = added;
	namer->merged[at] = NAMER_NO_FRAME;
	*ret_frames = namer->frames;
	*ret_count = namer->frame_count;
	return 0;
}

const struct function *namer_function(struct namer *namer, struct global_state *global,
				      const struct function_object *function)
{
	const struct merged_frame frame = {
		.kind = MERGED_C_FUNCTION,
		.global = global,
		.function = function,
	};

	return name_c_function(namer, &frame);
}
