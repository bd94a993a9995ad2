/* SPDX-License-Identifier: MIT */
#include "src/inspect/stack_states.h"

#include <unistd.h>

#include "src/linux/proc/resident.h"

enum { SEARCHED_BYTES = 256 << 10 }; /* Lua is mostly called from near where the thread began */

size_t stack_states_find(struct snapshot *snapshot, const struct lua_image *lua, struct memory *live,
			 pid_t pid, const struct mapping *stack,
			 struct state_clue ret_clues[static STATE_CLUES_MAX])
{
	uint64_t at = stack->begin, begin, end;
	int pages = resident_open(pid);
	size_t count = 0;

	if (stack->end - at > SEARCHED_BYTES)
		at = stack->end - SEARCHED_BYTES;
	/* Reading a page that was never touched would make the kernel map one. */
	while (pages >= 0 && resident_next(pages, &at, stack->end, &begin, &end)) {
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
