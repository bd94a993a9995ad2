/* SPDX-License-Identifier: MIT */
#include "unwind/names/namer_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"

enum { NAME_SIZE = 512 };

static bool called_name(struct namer *namer, const struct merged_frame *frame,
			char ret_name[static LUA_NAME_SIZE])
{
	return frame->caller && lua_call_name(namer->live, &frame->global->vm->layout, frame->caller,
					      frame->caller_pc, ret_name);
}

/* Use the name in the library's table, else the chunk name, which is the function's name alone. */
static const struct function *name_builtin_in_lua(struct namer *namer, const struct merged_frame *frame)
{
	const struct library *library = namer_library(namer, frame->global);
	const char *offered = library ? builtins_offered(&library->builtins, frame->proto->address) : NULL;
	struct function function = {
		.kind = FRAME_BUILTIN,
		.name = offered ? offered : frame->proto->chunkname,
	};

	return functions_intern(namer->functions, &function);
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
	function.root = namer_find_root(namer, frame->global, file);
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

size_t namer_name_native(struct namer *namer, uint64_t pc, struct named ret_named[static SYMBOL_INLINES_MAX])
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
		.name = namer_builtin_name(namer, frame->global, frame->function->ffid),
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
	offered = namer_offered_name(namer, frame->global, f);
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

static const struct function *name_vm(struct namer *namer, uint64_t pc)
{
	struct function function = { .kind = FRAME_VM };
	const struct module *module;

	if (image_classify(namer->image, pc, &module) == CODE_VM_FFI_CALL)
		function.name = "lj_vm_ffi_call";
	else if (symbols_find(namer->symbols, pc, namer->at))
		function.name = namer->at[0].name;
	else if (module && module->vm)
		function.name = namer_find_vm_name(namer, module->vm, pc);
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
		function.root = namer_find_root(namer, frame->global, file);
	}
	return functions_intern(namer->functions, &function);
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

size_t namer_name_frame(struct namer *namer, const struct merged_frame *frame,
			struct named ret_named[static SYMBOL_INLINES_MAX])
{
	if (frame->kind == MERGED_NATIVE)
		return namer_name_native(namer, code_address(frame), ret_named);
	*ret_named = (struct named){ .function = name_other(namer, frame) };
	return ret_named->function ? 1 : 0;
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
