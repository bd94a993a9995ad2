/* SPDX-License-Identifier: MIT */
#include "unwind/names/namer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/word_hash.h"
#include "unwind/lua/lua_names.h"
#include "unwind/names/namer_parts.h"
#include "unwind/names/vm_work.h"

enum {
	CACHE_MAX = 1 << 14, /* entries; a full cache is emptied */
	INSERTED_BYTES_MAX = 4 << 20,
};

/*
 * Of native code that is named once it is shown: a second entry, with the names, under the same key but for
 * this.
 */
enum { DETAIL_LATE = 1 };

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

void namer_reset(struct namer *namer)
{
	namer_forget_names(namer);
	namer_forget_libraries(namer);
	namer_forget_programs(namer);
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
	if (namer_is_in_libc(namer, frame))
		return keep(namer, &key, FOLD_LIBC, NULL, 0);
	count = namer_name_frame(namer, frame, named);
	return count ? keep(namer, &key, namer_kind_of(namer, frame, named[count - 1].function), named, count)
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
	count = namer_name_native(namer, key.code, named);
	cached->late = count ? keep(namer, &key, cached->kind, named, count) : NULL;
	if (!cached->late)
		return NULL;
	module = image_find(namer->image, key.code);
	cached->late->is_nameless = module && namer_is_nameless(named[count - 1].function, module);
	return cached->late;
}

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
 * Hide what a function of the C library calls in the library itself, without a name: since 2.41, glibc makes
 * all system calls that may wait in one such function. False when out of memory.
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

/* Decide how to show each frame. False when out of memory. */
static bool choose(struct namer *namer, const struct merged_stack *stack)
{
	if (!name_all(namer, stack))
		return false;
	if (namer->options.native == NATIVE_FOLD) {
		namer_find_called_by_ffi(namer, stack);
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
	namer_complete_vm_names(namer);
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
