/* SPDX-License-Identifier: MIT */
#include "src/survey/same_state.h"

#include "luajit-layouts/recognise/recognise.h"
#include "unwind/lua/lua_table.h"

/* In a struct StrInternState, wherever pointers have 4 or 8 bytes (lj_obj.h): str.tab is its first member. */
enum { SEED_IN_STR = 24 };

struct look {
	const struct same_state *same;
	void (*read)(void *context);
	void (*undo)(void *context);
	void *context;
	uint64_t registry, seed;
	bool is_same; /* and open */
};

static bool look_at_state(struct look *look)
{
	const struct same_state *same = look->same;
	const struct global_state *global = same->global;
	const struct layout *layout = &global->vm->layout;
	/* Before that struct and its seed came, the table of strings lay before the collector's state. */
	bool has_seed = layout->g_strhash > layout->g_gc_total;

	look->registry = look->seed = 0;
	if (!recognise_is_state(same->memory, global->vm, global->g) ||
	    !lua_table_registry(same->memory, layout, global->g, &look->registry) ||
	    (has_seed &&
	     !memory_u64(same->memory, global->g + (uint64_t)layout->g_strhash + SEED_IN_STR, &look->seed)))
		return false;
	return !same->is_met || (look->registry == same->registry && look->seed == same->seed);
}

static void read_if_same(void *context)
{
	struct look *look = context;

	look->is_same = look_at_state(look);
	if (look->is_same)
		look->read(look->context);
}

static void undo_if_same(void *context)
{
	struct look *look = context;

	if (look->is_same && look->undo)
		look->undo(look->context);
}

enum same_state_read same_state_hold(struct same_state *same, void (*read)(void *context),
				     void (*undo)(void *context), void *context)
{
	struct look look = { .same = same, .read = read, .undo = undo, .context = context };

	if (!hold_while(same->hold, read_if_same, undo_if_same, &look))
		return SAME_STATE_NOT_HELD;
	if (!look.is_same)
		return SAME_STATE_CLOSED;
	same->is_met = true;
	same->registry = look.registry;
	same->seed = look.seed;
	return SAME_STATE_READ;
}
