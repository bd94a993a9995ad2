/* SPDX-License-Identifier: MIT */
#include "output/bills/gc_allocated.h"

/* From one sample to the next, a marking may end at most so often, of a hundred. */
enum { MARKED_PERCENT_MAX = 30 };

void gc_allocated_add(struct gc_allocated *allocated, const struct sample_gc *gc)
{
	if (gc->heap_bytes == 0)
		return;
	allocated->looks++;
	allocated->marked_looks += gc->has_marked;
	*(gc->has_marked ? &allocated->marked_bytes : &allocated->unmarked_bytes) += gc->allocated_bytes;
}

void gc_allocated_merge(struct gc_allocated *allocated, const struct gc_allocated *other)
{
	allocated->looks += other->looks;
	allocated->marked_looks += other->marked_looks;
	allocated->unmarked_bytes += other->unmarked_bytes;
	allocated->marked_bytes += other->marked_bytes;
}

uint64_t gc_allocated_bytes(const struct gc_allocated *allocated, bool *ret_is_least)
{
	const uint64_t unmarked = allocated->looks - allocated->marked_looks;

	*ret_is_least = allocated->marked_looks * 100 > allocated->looks * MARKED_PERCENT_MAX;
	if (*ret_is_least || unmarked == 0)
		return allocated->unmarked_bytes + allocated->marked_bytes;
	/* What was allocated while a marking ended is known in part only: it counts as much as the rest. */
	return (uint64_t)((double)allocated->unmarked_bytes * (double)allocated->looks / (double)unmarked);
}
