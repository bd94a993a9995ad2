/* SPDX-License-Identifier: MIT */
#include "unwind/details/details.h"

#include <string.h>

#include "output/sample/text_ends.h"
#include "unwind/details/compiled_pattern.h"
#include "unwind/details/detail_parts.h"
#include "unwind/lua/lua_names.h"

/* C functions that Lua calls, by their names in Lua, and which argument tells what they work on. */
static const struct argument {
	const char *name;
	enum frame_kind kind;
	unsigned int slot;
	const char *word;
} arguments[] = {
	{ "string.find", FRAME_BUILTIN, 1, "pattern" },
	{ "string.match", FRAME_BUILTIN, 1, "pattern" },
	{ "string.gmatch", FRAME_BUILTIN, 1, "pattern" },
	{ "string.gsub", FRAME_BUILTIN, 1, "pattern" },
	{ "io.open", FRAME_BUILTIN, 0, "file" },
	{ "io.lines", FRAME_BUILTIN, 0, "file" },
	{ "io.popen", FRAME_BUILTIN, 0, "command" },
	{ "os.execute", FRAME_BUILTIN, 0, "command" },
	{ "os.remove", FRAME_BUILTIN, 0, "file" },
	{ "os.rename", FRAME_BUILTIN, 0, "file" },
	{ "loadfile", FRAME_BUILTIN, 0, "file" },
	{ "dofile", FRAME_BUILTIN, 0, "file" },
	{ "require", FRAME_BUILTIN, 0, "module" },
	/* Of lua-nginx-module's sockets: the name that the resolver looks up, or an address. */
	{ "connect", FRAME_C_FUNCTION, 1, "host" },
	{ "setpeername", FRAME_C_FUNCTION, 1, "host" },
};

/* lua-nginx-module's operations of shared dictionaries that are no FFI functions. */
static const char *const list_operations[] = { "lpush", "rpush", "lpop", "rpop", "llen", "get_keys" };

/* The beginnings of its FFI functions' names, in http and stream. */
static const char *const dict_prefixes[] = { "ngx_http_lua_ffi_shdict_", "ngx_stream_lua_ffi_shdict_" };
static const char *const pattern_functions[] = {
	"ngx_http_lua_ffi_exec_regex",
	"ngx_http_lua_ffi_compile_regex",
	"ngx_stream_lua_ffi_exec_regex",
	"ngx_stream_lua_ffi_compile_regex",
};

/* One of these that reads no dictionary, but tells where it is. */
static const char not_of_dict[] = "_udata_to_zone";

static const char lock_function[] = "ngx_shmtx_lock";
static const char regex_file[] = "resty/core/regex.lua", pattern_variable[] = "regex";
static const char compile_ending[] = "_compile_regex";

enum {
	DICT_PREFIXES = sizeof(dict_prefixes) / sizeof(dict_prefixes[0]),
	PATTERN_FUNCTIONS = sizeof(pattern_functions) / sizeof(pattern_functions[0]),
	LIST_OPERATIONS = sizeof(list_operations) / sizeof(list_operations[0]),
	ARGUMENTS = sizeof(arguments) / sizeof(arguments[0]),
};

static const char *name_of(const struct detail_source *source, size_t index)
{
	const char *name = namer_merged_function(source->namer, index)->name;

	return name ? name : "";
}

bool details_is_lock(const struct detail_source *source, size_t index)
{
	return strcmp(name_of(source, index), lock_function) == 0;
}

/*---- Regular expressions ----*/

/* The parameter "regex" of lua-resty-core's function, which it assigns nowhere. */
static bool pattern_of_variable(const struct detail_source *source, const struct merged_frame *frame,
				char ret_text[static DETAIL_STRING_BYTES])
{
	struct lua_local locals[LUA_LOCALS_MAX];
	size_t count = lua_locals(&frame->global->vm->layout, frame->proto, frame->pc, locals);

	for (size_t i = 0; i < count; i++)
		if (locals[i].name && strcmp(locals[i].name, pattern_variable) == 0)
			return details_slot_string(source, frame, (unsigned int)i, ret_text);
	return false;
}

static bool find_pattern(const struct detail_source *source, size_t index, bool is_compiling,
			 char ret_text[static DETAIL_STRING_BYTES])
{
	const struct merged_stack *stack = source->stack;
	const struct merged_frame *frame;
	uint64_t address;
	uint32_t length;

	do
		index = details_outwards(stack, index);
	while (index < stack->count && stack->frames[index].kind == MERGED_C_FUNCTION);
	if (index == stack->count)
		return false;
	frame = &stack->frames[index];
	if (!frame->proto || !text_ends_with(frame->proto->chunkname, regex_file))
		return false;
	if (!frame->compiled)
		return frame->pc && pattern_of_variable(source, frame, ret_text);
	return !is_compiling && compiled_pattern_find(source->live, frame, &address, &length) &&
	       details_bytes(source->live, address, length, ret_text);
}

static void add_pattern(struct details *details, size_t index, bool is_compiling)
{
	char text[DETAIL_STRING_BYTES];

	if (find_pattern(details->source, index, is_compiling, text))
		details_add(details, index, "[pattern %s]", text);
	else
		details_add(details, index, "[pattern unknown]");
}

/*---- Each kind of frame ----*/

static void visit_native(struct details *details, size_t index)
{
	const char *name = name_of(details->source, index);

	if (strcmp(name, lock_function) == 0)
		details_add_lock(details, index);
	for (size_t i = 0; i < PATTERN_FUNCTIONS; i++)
		if (strcmp(name, pattern_functions[i]) == 0)
			add_pattern(details, index, text_ends_with(name, compile_ending));
	for (size_t i = 0; i < DICT_PREFIXES; i++)
		if (strncmp(name, dict_prefixes[i], strlen(dict_prefixes[i])) == 0 &&
		    !text_ends_with(name, not_of_dict))
			details_add_dict(details, index, name + strlen(dict_prefixes[i]));
}

/* Does lua-nginx-module have the function? */
static bool is_gateways(const struct function *function)
{
	return function->module &&
	       (strstr(function->module, "ngx_") || strcmp(function->module, "nginx") == 0 ||
		strcmp(function->module, "openresty") == 0);
}

static void visit_c_function(struct details *details, size_t index)
{
	const struct detail_source *source = details->source;
	const struct merged_frame *frame = &source->stack->frames[index];
	const struct function *function = namer_merged_function(source->namer, index);
	const char *name = name_of(source, index);
	char text[DETAIL_STRING_BYTES];

	if (function->kind == FRAME_C_FUNCTION && !is_gateways(function))
		return;
	for (size_t i = 0; i < ARGUMENTS; i++) {
		const struct argument *argument = &arguments[i];

		if (function->kind != argument->kind || strcmp(name, argument->name) != 0)
			continue;
		if (details_slot_string(source, frame, argument->slot, text))
			details_add(details, index, "[%s %s]", argument->word, text);
		else
			details_add(details, index, "[%s unknown]", argument->word);
	}
	for (size_t i = 0; i < LIST_OPERATIONS && function->kind == FRAME_C_FUNCTION; i++)
		if (strcmp(name, list_operations[i]) == 0)
			details_add_dict(details, index, name);
}

size_t details_find(const struct detail_source *source, struct detail ret_details[static DETAILS_MAX])
{
	struct details details = { .source = source, .list = ret_details };

	for (size_t i = 0; i < source->stack->count && details.count < DETAILS_MAX; i++) {
		if (source->stack->frames[i].kind == MERGED_NATIVE)
			visit_native(&details, i);
		else if (source->stack->frames[i].kind == MERGED_C_FUNCTION)
			visit_c_function(&details, i);
	}
	return details.count;
}
