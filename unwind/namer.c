#include "unwind/namer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "unwind/builtins.h"
#include "unwind/lua_names.h"
#include "unwind/luajit.h"
#include "unwind/symbols.h"

enum {
	CACHE_MAX = 1 << 18,		/* entries; all are forgotten above */
	NAME_SIZE = 512,
};

/* What decides a frame's function. All bytes count, so it is always zeroed first. */
struct key {
	uint64_t code;		/* prototype's serial, function's address in memory, or machine code */
	uint64_t caller;	/* serial of the calling prototype, 0 if none */
	uint64_t caller_pc;
	uint32_t kind;
	uint32_t detail;	/* ffid of a builtin, number of a trace */
};

/* A function, and for native code its line and the function that it was inlined into. */
struct named {
	const struct function *function;
	uint32_t line;
};

struct cached {
	struct key key;
	UT_hash_handle hh;
	size_t count;
	struct named named[];	/* innermost first; more than one only where code was inlined */
};

/* Builtins' names of one universe. */
struct library {
	uint64_t g;
	struct builtins builtins;
	UT_hash_handle hh;
};

struct namer {
	struct image *image;
	struct memory *live;
	struct namer_options options;
	struct functions *functions;
	struct symbols *symbols;
	struct cached *cache;
	struct library *libraries;
	struct symbol at[SYMBOL_INLINES_MAX];	/* of the address being named */
	struct frame *frames;
	size_t frame_count, frame_size;
};

struct namer *namer_new(struct image *image, struct memory *live, struct functions *functions,
			const struct namer_options *options)
{
	struct namer *namer = calloc(1, sizeof(*namer));

	if (!namer)
		return NULL;
	namer->image = image;
	namer->live = live;
	namer->options = *options;
	namer->functions = functions;
	namer->symbols = symbols_new(image, live);
	if (!namer->symbols) {
		namer_free(namer);
		return NULL;
	}
	return namer;
}

static void forget_cache(struct namer *namer)
{
	struct cached *cached, *next;

	HASH_ITER(hh, namer->cache, cached, next) {
		HASH_DEL(namer->cache, cached);
		free(cached);
	}
}

static void forget_libraries(struct namer *namer)
{
	struct library *library, *next;

	HASH_ITER(hh, namer->libraries, library, next) {
		HASH_DEL(namer->libraries, library);
		free(library);
	}
}

void namer_reset(struct namer *namer)
{
	forget_cache(namer);
	forget_libraries(namer);
	symbols_reset(namer->symbols);
}

void namer_free(struct namer *namer)
{
	if (!namer)
		return;
	forget_cache(namer);
	forget_libraries(namer);
	symbols_free(namer->symbols);
	free(namer->frames);
	free(namer);
}

/*---- Naming one frame ----*/

static bool called_name(struct namer *namer, const struct merged_frame *frame,
			char ret_name[static LUA_NAME_SIZE])
{
	return frame->caller &&
	       lua_call_name(namer->live, &frame->universe->vm->layout, frame->caller,
			     frame->caller_pc, ret_name);
}

static const struct function *name_lua(struct namer *namer, const struct merged_frame *frame)
{
	char file[CHUNKNAME_MAX + 16], name[LUA_NAME_SIZE];
	struct function function = {
		.kind = FRAME_LUA,
		.file = file,
		.firstline = frame->proto->firstline,
	};

	lua_chunk_file(frame->proto->chunkname, file);
	if (lua_is_main_chunk(frame->proto))
		function.name = "main chunk";
	else if (called_name(namer, frame, name))
		function.name = name;
	return functions_intern(namer->functions, &function);
}

/* "libfoo.so+0x1234": code that no symbol covers, by module and offset. */
static void name_by_offset(const struct module *module, uint64_t pc, char ret_name[static NAME_SIZE])
{
	snprintf(ret_name, NAME_SIZE, "%s+0x%" PRIx64, module_name(module), pc - module->base);
}

/* Native code that no symbol covers: by the name that Lua calls it, or by its address. */
static const struct function *name_uncovered(struct namer *namer, enum frame_kind kind,
					     uint64_t pc, const char *lua_name)
{
	const struct module *module = image_find(namer->image, pc);
	struct function function = { .kind = kind, .name = lua_name };
	char name[NAME_SIZE];

	if (module)
		function.module = module_name(module);
	if (!function.name) {
		if (module)
			name_by_offset(module, pc, name);
		else
			snprintf(name, sizeof(name), "0x%" PRIx64, pc);
		function.name = name;
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

/* The functions at a native pc; how many, 0 when memory is short. */
static size_t name_native(struct namer *namer, uint64_t pc,
			  struct named ret_named[static SYMBOL_INLINES_MAX])
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

static const struct library *library_of(struct namer *namer, const struct lua_universe *universe)
{
	struct library *library;

	HASH_FIND(hh, namer->libraries, &universe->g, sizeof(universe->g), library);
	if (library)
		return library;
	library = calloc(1, sizeof(*library));
	if (!library)
		return NULL;
	library->g = universe->g;
	builtins_collect(namer->live, &universe->vm->layout, universe->g, &library->builtins);
	HASH_ADD(hh, namer->libraries, g, sizeof(library->g), library);
	return library;
}

static const struct function *name_builtin(struct namer *namer, const struct merged_frame *frame)
{
	const struct library *library = library_of(namer, frame->universe);
	struct function function = { .kind = FRAME_BUILTIN };
	char name[LUA_NAME_SIZE];

	if (library && library->builtins.names[frame->function->ffid][0]) {
		function.name = library->builtins.names[frame->function->ffid];
	} else if (called_name(namer, frame, name)) {
		function.name = name;
	} else {
		snprintf(name, sizeof(name), "builtin#%u", frame->function->ffid);
		function.name = name;
	}
	return functions_intern(namer->functions, &function);
}

static const struct function *name_c_function(struct namer *namer,
					      const struct merged_frame *frame)
{
	uint64_t f = frame->function->f;
	char name[LUA_NAME_SIZE];
	size_t count;

	if (frame->function->ffid != FF_C)
		return name_builtin(namer, frame);
	count = symbols_find(namer->symbols, f, namer->at);
	if (count)
		return name_symbol(namer, FRAME_C_FUNCTION, f, &namer->at[count - 1]);
	return name_uncovered(namer, FRAME_C_FUNCTION, f,
			      called_name(namer, frame, name) ? name : NULL);
}

static const struct function *name_vm(struct namer *namer)
{
	static const struct function vm = { .kind = FRAME_VM };

	return functions_intern(namer->functions, &vm);
}

static const struct function *name_trace(struct namer *namer, const struct merged_frame *frame)
{
	char name[NAME_SIZE];
	struct function function = { .kind = FRAME_TRACE, .name = name };

	snprintf(name, sizeof(name), "trace#%" PRIu32, frame->trace->number);
	return functions_intern(namer->functions, &function);
}

/* Where the frame's machine code was, for look-ups: within the call, not behind it. */
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
	case MERGED_LUA:
		key.code = frame->proto->serial;
		break;
	case MERGED_C_FUNCTION:
		key.code = frame->function->ffid == FF_C ? frame->function->f : frame->universe->g;
		key.detail = frame->function->ffid;
		break;
	case MERGED_NATIVE:
		key.code = code_address(frame);
		break;
	case MERGED_TRACE:
		key.detail = frame->trace->number;
		break;
	case MERGED_VM:
	case MERGED_LOST:
		break;
	}
	return key;
}

static const struct function *name_other(struct namer *namer, const struct merged_frame *frame)
{
	switch (frame->kind) {
	case MERGED_LUA:
		return name_lua(namer, frame);
	case MERGED_C_FUNCTION:
		return name_c_function(namer, frame);
	case MERGED_VM:
		return name_vm(namer);
	case MERGED_TRACE:
		return name_trace(namer, frame);
	case MERGED_NATIVE:
	case MERGED_LOST:
		break;
	}
	return functions_lost(frame->lost);
}

/* How many functions there are; 0 when memory is short. */
static size_t name_uncached(struct namer *namer, const struct merged_frame *frame,
			    struct named ret_named[static SYMBOL_INLINES_MAX])
{
	if (frame->kind == MERGED_NATIVE)
		return name_native(namer, code_address(frame), ret_named);
	*ret_named = (struct named){ .function = name_other(namer, frame) };
	return ret_named->function ? 1 : 0;
}

static const struct cached *name(struct namer *namer, const struct merged_frame *frame)
{
	struct named named[SYMBOL_INLINES_MAX];
	struct key key = key_of(frame);
	struct cached *cached;
	size_t count;

	HASH_FIND(hh, namer->cache, &key, sizeof(key), cached);
	if (cached)
		return cached;
	if (HASH_COUNT(namer->cache) >= CACHE_MAX)
		forget_cache(namer);
	count = name_uncached(namer, frame, named);
	cached = count ? calloc(1, sizeof(*cached) + count * sizeof(*named)) : NULL;
	if (!cached)
		return NULL;
	cached->key = key;
	cached->count = count;
	memcpy(cached->named, named, count * sizeof(*named));
	HASH_ADD(hh, namer->cache, key, sizeof(cached->key), cached);
	return cached;
}

/*---- Which frames are shown ----*/

/* Native code of LuaJIT, or of a program that LuaJIT is linked into. */
static bool is_in_vm_module(const struct namer *namer, const struct merged_frame *frame)
{
	const struct module *module = image_find(namer->image, code_address(frame));

	return module && module->vm;
}

static bool is_lua(const struct merged_frame *frame)
{
	return frame->kind == MERGED_LUA || frame->kind == MERGED_C_FUNCTION;
}

/* Where in the stack a native frame stands. */
struct surroundings {
	bool above_lua;		/* it was called, however indirectly, by Lua */
	bool below_lua;		/* it called Lua */
	bool in_c_function;	/* the Lua frame that called it is a builtin or C function */
};

static bool is_shown_folded(const struct namer *namer, const struct merged_frame *frame,
			    const struct surroundings *at, bool *ret_as_vm)
{
	*ret_as_vm = false;
	if (!at->above_lua && !at->below_lua)
		return true;
	if (frame->kind == MERGED_VM || (at->above_lua && at->in_c_function))
		return false;
	if (!is_in_vm_module(namer, frame))
		return true;
	*ret_as_vm = at->above_lua && !at->below_lua;
	return *ret_as_vm;
}

static bool is_shown(const struct namer *namer, const struct merged_frame *frame,
		     const struct surroundings *at, bool *ret_as_vm)
{
	*ret_as_vm = false;
	if (is_lua(frame) || frame->kind == MERGED_LOST)
		return true;
	if (frame->kind == MERGED_TRACE)
		return namer->options.traces;
	switch (namer->options.native) {
	case NATIVE_ALL:
		return true;
	case NATIVE_NONE:
		return false;
	case NATIVE_FOLD:
		break;
	}
	return is_shown_folded(namer, frame, at, ret_as_vm);
}

static bool make_room(struct namer *namer)
{
	size_t size = namer->frame_size ? namer->frame_size * 2 : 256;
	struct frame *larger;

	if (namer->frame_count < namer->frame_size)
		return true;
	larger = realloc(namer->frames, size * sizeof(*larger));
	if (!larger)
		return false;
	namer->frames = larger;
	namer->frame_size = size;
	return true;
}

static void set_position(const struct merged_frame *merged, struct frame *frame)
{
	frame->compiled = merged->compiled;
	if (merged->kind != MERGED_LUA)
		return;
	frame->line = lua_line(&merged->universe->vm->layout, merged->proto, merged->pc);
	if (merged->pc == 0)
		frame->certainty = CERTAINTY_FUNCTION;
	else if (merged->pc_is_near)
		frame->certainty = CERTAINTY_NEAREST;
}

static bool add(struct namer *namer, const struct merged_frame *merged)
{
	const struct cached *cached = name(namer, merged);

	for (size_t i = 0; cached && i < cached->count; i++) {
		struct frame frame = {
			.function = cached->named[i].function,
			.line = cached->named[i].line,
			.certainty = CERTAINTY_EXACT,
		};

		if (!make_room(namer))
			return false;
		set_position(merged, &frame);
		namer->frames[namer->frame_count++] = frame;
	}
	return cached != NULL;
}

/* LuaJIT's own frames; a run of them is one. */
static bool add_vm(struct namer *namer)
{
	const struct function *function = name_vm(namer);

	if (!function || !make_room(namer))
		return false;
	if (namer->frame_count == 0 || namer->frames[namer->frame_count - 1].function != function)
		namer->frames[namer->frame_count++] = (struct frame){
			.function = function,
			.certainty = CERTAINTY_EXACT,
		};
	return true;
}

int namer_name(struct namer *namer, const struct merged_stack *stack,
	       const struct frame **ret_frames, size_t *ret_count)
{
	struct surroundings at = { 0 };
	size_t next_lua = 0;

	namer->frame_count = 0;
	for (size_t i = 0; i < stack->count; i++) {
		const struct merged_frame *frame = &stack->frames[i];
		bool as_vm;

		/* The next Lua frame towards the root is what called this one. */
		while (next_lua < stack->count && (next_lua < i || !is_lua(&stack->frames[next_lua])))
			next_lua++;
		at.above_lua = next_lua < stack->count;
		at.in_c_function = at.above_lua && stack->frames[next_lua].kind == MERGED_C_FUNCTION;
		if (is_shown(namer, frame, &at, &as_vm) &&
		    !(as_vm ? add_vm(namer) : add(namer, frame)))
			return -ENOMEM;
		at.below_lua |= is_lua(frame);
	}
	*ret_frames = namer->frames;
	*ret_count = namer->frame_count;
	return 0;
}
