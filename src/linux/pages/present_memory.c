/* SPDX-License-Identifier: MIT */
#include "src/linux/pages/present_memory.h"

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	/* The memory is its first member. */
	const struct present_memory *present = (const void *)memory;

	for (size_t i = 0; i < count; i++) {
		uint64_t begin = ranges[i].address, end = begin + ranges[i].length;
		struct page_sum here = end >= begin ? page_runs_sum(present->runs, begin, end)
						    : (struct page_sum){ 0 };

		if (here.exclusive + here.shared == ranges[i].length)
			memory_read_ranges(present->live, &ranges[i], 1);
		else
			ranges[i].status = MEMORY_NOT_CAPTURED;
	}
}

struct present_memory present_memory(struct memory *live, const struct page_runs *runs)
{
	return (struct present_memory){ .memory = { .read_ranges = read_ranges },
					.live = live,
					.runs = runs };
}
