/* SPDX-License-Identifier: MIT */
#include "src/inspect/stack_states.h"

#include <unistd.h>

#include "src/linux/proc/resident.h"

enum { SEARCHED_BYTES = 256 << 10 }; /* Lua is mostly called from near where the thread began */

bool stack_states_bound(const struct mapping *mapping, const struct stack_place *place,
			struct native_stack *ret_stack)
{
	uint64_t begin = mapping->begin, end = place->is_end ? place->address : mapping->end;

	if (place->below > begin) {
		if (!place->below_is_end)
			return false;
		begin = place->below;
	}
	if (place->above < end)
		return false;
	*ret_stack = (struct native_stack){ .range = { .address = begin, .length = (size_t)(end - begin) } };
	if (!place->others_unknown)
		ret_stack->sure = ret_stack->range;
	return true;
}

size_t stack_states_find(struct snapshot *snapshot, const struct lua_image *lua, struct memory *live,
			 pid_t pid, const struct memory_range *stack,
			 struct state_clue ret_clues[static STATE_CLUES_MAX])
{
	const uint64_t stack_end = stack->address + stack->length;
	uint64_t at = stack->address, begin, end;
	int pages = resident_open(pid);
	size_t count = 0;

	if (stack->length > SEARCHED_BYTES)
		at = stack_end - SEARCHED_BYTES;
	/* Reading a page that was never touched would make the kernel map one. */
	while (pages >= 0 && resident_next(pages, &at, stack_end, &begin, &end)) {
		struct memory_range range = { .address = begin, .length = (size_t)(end - begin) };

		snapshot_clear(snapshot);
		snapshot_capture(snapshot, &range, 1);
		if (range.status == MEMORY_OK)
			count = unknown_states_linked(snapshot, lua, live, &range, ret_clues, count);
	}
	if (pages >= 0)
		close(pages);
	return count;
}
