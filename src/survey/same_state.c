/* SPDX-License-Identifier: MIT */
#include "src/survey/same_state.h"

#include "luajit-layouts/recognise/recognise.h"
#include "unwind/lua/lua_table.h"

/* In a struct StrInternState, wherever pointers have 4 or 8 bytes (lj_obj.h): str.tab is its first member. */
enum { SEED_IN_STR = 24 };

bool same_state_look(struct same_state *same, struct memory *memory, const struct global_state *global)
{
	const struct layout *layout = &global->vm->layout;
	/* Before that struct and its seed came, the table of strings lay before the collector's state. */
	bool has_seed = layout->g_strhash > layout->g_gc_total;

	same->registry_now = same->seed_now = 0;
	if (!recognise_is_state(memory, global->vm, global->g) ||
	    !lua_table_registry(memory, layout, global->g, &same->registry_now) ||
	    (has_seed &&
	     !memory_u64(memory, global->g + (uint64_t)layout->g_strhash + SEED_IN_STR, &same->seed_now)))
		return false;
	return !same->is_met || (same->registry_now == same->registry && same->seed_now == same->seed);
}

void same_state_met(struct same_state *same)
{
	if (same->is_met)
		return;
	same->is_met = true;
	same->registry = same->registry_now;
	same->seed = same->seed_now;
}
