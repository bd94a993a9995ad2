/* SPDX-License-Identifier: MIT */
#include "unwind/details/resty_lock.h"

#include <string.h>

#include "output/sample/text_ends.h"
#include "unwind/details/detail_parts.h"
#include "unwind/lua/luajit.h"

enum { SELF_SLOT = 0, KEY_SLOT = 1, NEAR_FRAMES = 4 };

static const char lock_file[] = "resty/lock.lua";

/* The frame of lock() among the innermost ones; NULL if there is none. */
static const struct merged_frame *find_frame(const struct merged_stack *stack)
{
	for (size_t i = 0; i < stack->count && i < NEAR_FRAMES; i++) {
		const struct merged_frame *frame = &stack->frames[i];

		if (frame->kind == MERGED_LUA && !frame->compiled && frame->proto && frame->global &&
		    text_ends_with(frame->proto->chunkname, lock_file))
			return frame;
	}
	return NULL;
}

static bool find_member(struct memory *memory, const struct layout *luajit, uint64_t table, const char *key,
			uint64_t *ret_table)
{
	uint64_t known = 0, value;

	if (!lua_table_find(memory, luajit, table, key, &known, &value) ||
	    tvalue_tag(luajit->gc64, value) != TAG_TAB)
		return false;
	*ret_table = tvalue_object(luajit->gc64, value);
	return true;
}

static bool find_shared(struct memory *memory, const struct layout *luajit, uint64_t g, uint64_t *ret_shared)
{
	uint64_t registry, loaded, ngx;

	return lua_table_registry(memory, luajit, g, &registry) &&
	       find_member(memory, luajit, registry, "_LOADED", &loaded) &&
	       find_member(memory, luajit, loaded, "ngx", &ngx) &&
	       find_member(memory, luajit, ngx, "shared", ret_shared);
}

struct naming {
	const struct layout *luajit;
	struct resty_lock_memo *memo;
	uint64_t dict;
};

static void compare(void *context, const char *key, uint64_t value)
{
	struct naming *naming = context;
	bool gc64 = naming->luajit->gc64;

	if (tvalue_tag(gc64, value) != TAG_TAB || tvalue_object(gc64, value) != naming->dict)
		return;
	naming->memo->dict = naming->dict;
	memcpy(naming->memo->name, key, strlen(key) + 1);
}

bool resty_lock_find(struct memory *memory, const struct merged_stack *stack, struct resty_lock_memo *memo,
		     struct resty_lock *ret_lock)
{
	const struct merged_frame *frame = find_frame(stack);
	const struct layout *luajit = frame ? &frame->global->vm->layout : NULL;
	struct naming naming = { .luajit = luajit, .memo = memo };
	uint64_t self, key;

	if (!frame || !details_slot(frame, SELF_SLOT, &self) || tvalue_tag(luajit->gc64, self) != TAG_TAB ||
	    !find_member(memory, luajit, tvalue_object(luajit->gc64, self), "dict", &naming.dict))
		return false;
	if (memo->g != frame->global->g) {
		*memo = (struct resty_lock_memo){ 0 };
		if (!find_shared(memory, luajit, frame->global->g, &memo->shared))
			return false;
		memo->g = frame->global->g;
	}
	if (memo->dict != naming.dict) {
		memo->dict = 0;
		lua_table_each(memory, luajit, memo->shared, compare, &naming);
	}
	if (memo->dict == 0)
		return false;
	*ret_lock = (struct resty_lock){ .key = "" };
	memcpy(ret_lock->dict, memo->name, sizeof(ret_lock->dict));
	if (details_slot(frame, KEY_SLOT, &key) && tvalue_tag(luajit->gc64, key) == TAG_STR)
		lua_table_text(memory, luajit, tvalue_object(luajit->gc64, key), ret_lock->key);
	return true;
}
