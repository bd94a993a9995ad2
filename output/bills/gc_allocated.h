/* SPDX-License-Identifier: MIT */
/*
 * gc_allocated: how many bytes VMs have allocated, by all of their samples in some time.
 */
#ifndef LJSPY_GC_ALLOCATED_H
#define LJSPY_GC_ALLOCATED_H

#include <stdbool.h>
#include <stdint.h>

#include "output/sample/sample.h"

/* Zeroed memory has no sample. */
struct gc_allocated {
	uint64_t used_ns, marked_ns; /* of samples that know the heap, and of those of them with has_marked */
	uint64_t unmarked_bytes, marked_bytes;
};

void gc_allocated_add(struct gc_allocated *allocated, const struct sample *sample);

/* Add the samples of another time. */
void gc_allocated_merge(struct gc_allocated *allocated, const struct gc_allocated *other);

/*
 * All bytes. *ret_is_least: it may have been any number more, since cycles are about as short as the time
 * from one sample to the next.
 */
uint64_t gc_allocated_bytes(const struct gc_allocated *allocated, bool *ret_is_least);

#endif
