/* SPDX-License-Identifier: MIT */
/*
 * Errors that are being raised, and who catches them.
 *
 * LuaJIT searches its frames for the one that catches an error, and unwinds the native stack down to
 * it (lj_err.c, err_unwind()). Meanwhile the function that raised it is still on Lua's stack: error(),
 * assert(), or one in which an instruction failed; then LuaJIT's own functions or the unwinder run on
 * top of it, and so does the handler of xpcall(). pcall(), xpcall() and coroutine.resume() catch, so
 * does C code that calls Lua protected (FRAME_CP); coroutine.wrap() raises the error again.
 */
#include "unwind/details/detail_parts.h"

#include <stdio.h>
#include <string.h>

#include "output/sample/text_ends.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"
#include "unwind/values/trace_values.h"
#include "unwind/values/value_text.h"

enum { CATCHER_BYTES = 288, PLACE_BYTES = 240, FILE_BYTES = 200, VALUE_BYTES = 120 };

static const char catcher_unknown[] = "caught: unknown", coroutine_file[] = "resty/core/coroutine.lua";

static const char *name_of(const struct details *details, size_t index)
{
	const struct function *function = namer_merged_function(details->source->namer, index);

	return function->name ? function->name : "";
}

static bool is_builtin(const struct details *details, size_t index, const char *name)
{
	return details->source->stack->frames[index].kind == MERGED_C_FUNCTION &&
	       namer_merged_function(details->source->namer, index)->kind == FRAME_BUILTIN &&
	       strcmp(name_of(details, index), name) == 0;
}

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/*---- Who catches ----*/

/* " at handler.lua:12": the line that calls the function at index; "" if it is unknown. */
static void place_of_call(const struct details *details, size_t index, char ret_place[static PLACE_BYTES])
{
	const struct merged_stack *stack = details->source->stack;
	size_t caller = details_outwards(stack, index);
	char file[CHUNKNAME_MAX + 16];
	const struct merged_frame *frame;
	const char *shown = file;
	size_t length;

	*ret_place = '\0';
	if (caller == stack->count || stack->frames[caller].kind != MERGED_LUA)
		return;
	frame = &stack->frames[caller];
	lua_chunk_file(frame->proto->chunkname, file);
	shown += *file == '@' || *file == '=';
	length = strlen(shown);
	snprintf(ret_place, PLACE_BYTES, " at %s%s:%u", length > FILE_BYTES ? "..." : "",
		 length > FILE_BYTES ? shown + length - FILE_BYTES : shown,
		 lua_line(&frame->global->vm->layout, frame->proto, frame->pc));
}

/* The link of a frame that is in memory, past that of a vararg function's copy. */
static bool load_link(const struct merged_frame *frame, uint64_t *ret_link)
{
	uint64_t link;

	if (!frame->thread || !frame->base || (frame->compiled && trace_has_inlined(frame)) ||
	    !lua_thread_link(frame->thread, frame->base, &link))
		return false;
	if ((link & FRAME_TYPE_P) == FRAME_VARG &&
	    !lua_thread_link(frame->thread, frame->base - (link & ~(uint64_t)FRAME_TYPE_P), &link))
		return false;
	*ret_link = link;
	return true;
}

/* C code has called the function at index, and protects itself. */
static void catch_in_c(const struct details *details, size_t index, char ret_catcher[static CATCHER_BYTES])
{
	const struct merged_stack *stack = details->source->stack;

	while (++index < stack->count &&
	       (stack->frames[index].kind == MERGED_NATIVE || stack->frames[index].kind == MERGED_VM))
		if (namer_merged_kind(details->source->namer, index) == FOLD_NATIVE) {
			snprintf(ret_catcher, CATCHER_BYTES, "caught by C: %s", name_of(details, index));
			return;
		}
	snprintf(ret_catcher, CATCHER_BYTES, "caught by C");
}

/* Is the next frame outwards the one that has resumed the coroutine whose first function is at index? */
static bool is_resumed(const struct details *details, size_t index)
{
	const struct merged_stack *stack = details->source->stack;
	size_t outwards = details_outwards(stack, index);

	for (size_t i = index + 1; i < stack->count && i < outwards; i++)
		if (stack->frames[i].kind == MERGED_CHILD)
			return true;
	return outwards < stack->count && (is_builtin(details, outwards, "coroutine.wrap_aux") ||
					   is_builtin(details, outwards, "coroutine.resume"));
}

/*
 * The parent of a coroutine of lua-nginx-module waits in coroutine.resume(), or in what coroutine.wrap()
 * made.
 */
static void catch_in_parent(const struct details *details, size_t index,
			    char ret_catcher[static CATCHER_BYTES])
{
	const struct merged_stack *stack = details->source->stack;
	size_t parent = details_outwards(stack, index);
	size_t caller = parent < stack->count ? details_outwards(stack, parent) : parent;
	char place[PLACE_BYTES];

	if (parent == stack->count || !text_ends_with(name_of(details, parent), "resume")) {
		snprintf(ret_catcher, CATCHER_BYTES, "%s", catcher_unknown);
		return;
	}
	/* lua-resty-core puts a function of its own in between. */
	if (caller < stack->count && stack->frames[caller].kind == MERGED_LUA &&
	    text_ends_with(stack->frames[caller].proto->chunkname, coroutine_file))
		parent = caller;
	place_of_call(details, parent, place);
	snprintf(ret_catcher, CATCHER_BYTES, "caught by coroutine.resume%s", place);
}

static bool is_catcher(const struct details *details, size_t index, const char **ret_name)
{
	static const char *const catchers[] = { "pcall", "xpcall", "coroutine.resume" };

	for (size_t i = 0; i < sizeof(catchers) / sizeof(catchers[0]); i++)
		if (is_builtin(details, index, catchers[i])) {
			*ret_name = catchers[i];
			return true;
		}
	return false;
}

/* In words, who catches what is raised at this frame, or further in. */
static void find_catcher(const struct details *details, size_t index, char ret_catcher[static CATCHER_BYTES])
{
	const struct merged_stack *stack = details->source->stack;
	char place[PLACE_BYTES];

	for (size_t i = index; i < stack->count; i++) {
		const struct merged_frame *frame = &stack->frames[i];
		const char *name;
		uint64_t link;

		if (is_catcher(details, i, &name)) {
			place_of_call(details, i, place);
			snprintf(ret_catcher, CATCHER_BYTES, "caught by %s%s", name, place);
			return;
		}
		if (frame->kind == MERGED_LOST)
			break;
		if (frame->kind == MERGED_CHILD) {
			catch_in_parent(details, i, ret_catcher);
			return;
		}
		if ((frame->kind == MERGED_LUA || frame->kind == MERGED_C_FUNCTION) &&
		    load_link(frame, &link) && (link & FRAME_TYPE_P) == FRAME_CP && !is_resumed(details, i)) {
			catch_in_c(details, i, ret_catcher);
			return;
		}
	}
	snprintf(ret_catcher, CATCHER_BYTES, "%s", catcher_unknown);
}

/*---- Who raises ----*/

/* Does the native frame raise an error of Lua's, or unwind the stack for LuaJIT? */
static bool raises(const struct details *details, size_t index)
{
	const struct merged_stack *stack = details->source->stack;
	const char *name = name_of(details, index);

	if (stack->frames[index].kind != MERGED_NATIVE)
		return false;
	if (has_prefix(name, "lj_err_") || strcmp(name, "lua_error") == 0 || strcmp(name, "luaL_error") == 0)
		return true;
	return (strcmp(name, "_Unwind_RaiseException") == 0 || strcmp(name, "_Unwind_ForcedUnwind") == 0) &&
	       index + 1 < stack->count &&
	       namer_merged_kind(details->source->namer, index + 1) == FOLD_LUAJIT;
}

/* The function or thread, by its tag, in a slot. False if there is something else. */
static bool load_object(const struct merged_frame *frame, unsigned slot, int32_t tag, uint64_t *ret_object)
{
	const bool gc64 = frame->global->vm->layout.gc64;
	uint64_t value;

	if (!details_slot(frame, slot, &value) || tvalue_tag(gc64, value) != tag)
		return false;
	*ret_object = tvalue_object(gc64, value);
	return true;
}

/*
 * At the end of unwinding, the function that raised the error is no longer on Lua's stack, and the one
 * that catches it is on top. Has it called a function? Then its own arguments are right.
 */
static bool has_caught(const struct details *details, size_t index)
{
	const struct merged_frame *frame = &details->source->stack->frames[index];
	uint64_t object;

	if (is_builtin(details, index, "pcall"))
		return load_object(frame, 0, TAG_FUNC, &object);
	if (is_builtin(details, index, "coroutine.resume"))
		return load_object(frame, 0, TAG_THREAD, &object);
	return is_builtin(details, index, "xpcall") && load_object(frame, 0, TAG_FUNC, &object) &&
	       load_object(frame, 1, TAG_FUNC, &object);
}

/*
 * Is the frame at callee that of the handler of xpcall(), called for an error of the function at index?
 * Where LuaJIT has no symbols, nothing else tells. xpcall() has the handler in its first slot by then.
 */
static bool is_handler(const struct details *details, size_t callee, size_t index)
{
	const struct merged_stack *stack = details->source->stack;
	const struct merged_frame *frame = &stack->frames[callee];
	uint64_t link, handler;
	const char *name;

	if (!frame->function || !load_link(frame, &link) || (link & FRAME_TYPE_P) != FRAME_C)
		return false;
	for (size_t i = index + 1; i < stack->count && stack->frames[i].kind != MERGED_CHILD; i++)
		if (is_catcher(details, i, &name))
			return is_builtin(details, i, "xpcall") &&
			       load_object(&stack->frames[i], 0, TAG_FUNC, &handler) &&
			       handler == frame->function->address;
	return false;
}

/*
 * Of the Lua or C function at index: is it raising an error? The frames on top of it, up to from, are native.
 */
static bool is_raising(const struct details *details, size_t from, size_t index)
{
	if (is_builtin(details, index, "error"))
		return true;
	for (size_t i = from; i < index; i++)
		if (raises(details, i) || (details->source->stack->frames[i].kind == MERGED_NATIVE &&
					   is_builtin(details, index, "assert")))
			return true;
	return from > 0 && from < index && is_handler(details, from - 1, index);
}

/*---- The value ----*/

static bool name_no_function(void *context, uint64_t function, char ret_name[static VALUE_FUNCTION_SIZE])
{
	(void)context;
	(void)function;
	(void)ret_name;
	return false;
}

/* The value is error()'s first argument. */
static bool read_value(const struct details *details, size_t index, char ret_text[static VALUE_TEXT_SIZE])
{
	const struct detail_source *source = details->source;
	const struct merged_frame *frame = &source->stack->frames[index];
	const struct value_reader reader = {
		.memory = snapshot_memory(source->capture->snapshot),
		.live = source->live,
		.layout = &frame->global->vm->layout,
		.g = frame->global->g,
		.name_function = name_no_function,
	};
	uint64_t value;

	return is_builtin(details, index, "error") && details_slot(frame, 0, &value) &&
	       value_text(&reader, value, ret_text);
}

size_t details_find_errors(const struct detail_source *source, bool with_value,
			   struct detail ret_details[static DETAILS_MAX])
{
	struct details details = { .source = source, .list = ret_details };
	const struct merged_stack *stack = source->stack;
	size_t from = 0;

	for (size_t i = 0; i < stack->count; i++) {
		char catcher[CATCHER_BYTES], value[VALUE_TEXT_SIZE];
		const char *name;

		if (stack->frames[i].kind != MERGED_LUA && stack->frames[i].kind != MERGED_C_FUNCTION)
			continue;
		if (is_raising(&details, from, i)) {
			/* What is wrong with its own arguments, it does not catch. */
			if (is_catcher(&details, i, &name) && !has_caught(&details, i))
				snprintf(catcher, sizeof(catcher), "%s", catcher_unknown);
			else
				find_catcher(&details, i, catcher);
			if (with_value && read_value(&details, i, value))
				details_add(&details, i, "[error %.*s, %s]", VALUE_BYTES, value, catcher);
			else
				details_add(&details, i, "[%s]", catcher);
		}
		from = i + 1;
	}
	return details.count;
}
