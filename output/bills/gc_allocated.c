/* SPDX-License-Identifier: MIT */
#include "output/bills/gc_allocated.h"

/* A marking may have ended in so much of the time, from one sample to the next. */
enum { MARKED_PERCENT_MAX = 30 };

void gc_allocated_add(struct gc_allocated *allocated, const struct sample *sample)
{
	const struct sample_gc *gc = &sample->gc;

	if (gc->heap_bytes == 0)
		return;
	allocated->used_ns += gc->used_ns;
	allocated->marked_ns += gc->has_marked ? gc->used_ns : 0;
	*(gc->has_marked ? &allocated->marked_bytes : &allocated->unmarked_bytes) += gc->allocated_bytes;
}

void gc_allocated_merge(struct gc_allocated *allocated, const struct gc_allocated *other)
{
	allocated->used_ns += other->used_ns;
	allocated->marked_ns += other->marked_ns;
	allocated->unmarked_bytes += other->unmarked_bytes;
	allocated->marked_bytes += other->marked_bytes;
}

uint64_t gc_allocated_bytes(const struct gc_allocated *allocated, bool *ret_is_least)
{
	const double used_ns = (double)allocated->used_ns,
		     unmarked_ns = used_ns - (double)allocated->marked_ns;

	*ret_is_least = used_ns - unmarked_ns > used_ns * MARKED_PERCENT_MAX / 100;
	if (*ret_is_least || unmarked_ns <= 0)
		return allocated->unmarked_bytes + allocated->marked_bytes;
	/*
	 * What was allocated while a marking ended is known in part only: its time counts as much as the
	 * rest.
	 */
	return (uint64_t)((double)allocated->unmarked_bytes * used_ns / unmarked_ns);
}
