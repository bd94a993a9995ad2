/* SPDX-License-Identifier: MIT */
/*
 * weight: what a sample counts for, and the clocks that take samples, in one table.
 *
 * doc/HOWTO_ADD_A_CLOCK.md leads through an addition.
 */
#ifndef LJSPY_WEIGHT_H
#define LJSPY_WEIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/sample.h"

enum weight_kind {
	WEIGHT_CPU_TIME,
	WEIGHT_WALL_TIME,
	WEIGHT_OFF_CPU_TIME, /* wall time after a filter has subtracted the CPU time */
	WEIGHT_ALLOC_BYTES,
	WEIGHT_ALLOC_OBJECTS,
	/* Of heaps, whose paths are stacks; no sample has them. */
	WEIGHT_HEAP_BYTES,
	WEIGHT_HEAP_OBJECTS,
	WEIGHT_COUNT
};

/* A unit's name is in pictures: "time", "bytes", "objects". Times are in nanoseconds. */
struct weight {
	const char *name;  /* "cpu": a word of options, recordings and formats, never changed */
	const char *title; /* "CPU time", for people */
	const char *unit;
	enum weight_kind clock; /* the clock of recordings that have it; a clock's own is itself;
					   WEIGHT_COUNT: no recording has it */
	bool is_elapsed;        /* a time, wall_ns, not cpu_ns; its clock also samples threads that sleep */
};

extern const struct weight weights[WEIGHT_COUNT];

/* Does it take samples? The other weights are views of what a clock has recorded. */
bool weight_is_clock(enum weight_kind kind);

/* False, with *ret_kind untouched, if no weight has the name. */
bool weight_by_name(const char *name, size_t length, enum weight_kind *ret_kind);

/* Do samples have it? A heap is counted. */
bool weight_is_sampled(enum weight_kind kind);

/* Is it a time, in nanoseconds? */
bool weight_is_time(enum weight_kind kind);

/* Can a recording by that clock show it? */
bool weight_is_in(enum weight_kind shown, enum weight_kind clock);

/* What a sample, or several, stand for, by which a weight counts them. */
struct amounts {
	uint64_t cpu_ns, wall_ns;
	uint64_t alloc_bytes, alloc_objects;
};

struct amounts amounts_of(const struct sample *sample);
void amounts_add(struct amounts *sum, const struct amounts *amounts);

uint64_t weight_in(enum weight_kind kind, const struct amounts *amounts);
uint64_t weight_of(enum weight_kind kind, const struct sample *sample);

/*
 * The time that a clock counts, and that the rate of its samples is of: CPU time, or all time. 0 if the
 * rate says nothing: one look at a target finds several allocations.
 */
uint64_t weight_clocked_ns(enum weight_kind clock, uint64_t cpu_ns, uint64_t wall_ns);

#endif
