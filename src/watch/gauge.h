/* SPDX-License-Identifier: MIT */
/*
 * gauge: does a condition hold for one process, or for one of its heaps?
 *
 * It is fed with what others have read, and says when the condition begins to hold: once,
 * until it has not held in between.
 */
#ifndef LJSPY_GAUGE_H
#define LJSPY_GAUGE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/options/condition.h"

enum {
	GAUGE_READINGS = 34,
	GAUGE_PARTS = 32,      /* a span of CPU time has so many readings */
	GAUGE_HEAP_PARTS = 10, /* of each tenth of a span, the least heap counts */
};

struct gauge {
	const struct condition *condition;
	uint64_t since_ns; /* what was before counts for nothing */
	bool holds;
	uint64_t value; /* the last one that was compared with the limit, in its unit */
	struct gauge_reading {
		uint64_t at_ns, value;
	} readings[GAUGE_READINGS]; /* the oldest first */
	unsigned int count;
};

void gauge_begin(struct gauge *gauge, const struct condition *condition, uint64_t since_ns);

/* CONDITION_CPU: the CPU time of the process so far. */
bool gauge_cpu(struct gauge *gauge, uint64_t now_ns, uint64_t cpu_ns);

/*
 * CONDITION_HEAP: what the last collection has left of a heap; 0 if unknown. The least of a tenth
 * of the span is compared with the least of the whole.
 */
bool gauge_heap(struct gauge *gauge, uint64_t now_ns, uint64_t live_bytes);

/* The others: a value to compare with the limit. */
bool gauge_value(struct gauge *gauge, uint64_t value);

#endif
