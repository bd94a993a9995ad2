/* SPDX-License-Identifier: MIT */
/*
 * weight: what a sample counts for, and the clocks that samples are taken by: one table.
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
	WEIGHT_OFF_CPU_TIME,	/* wall time of samples that a filter has taken the CPU time from */
	WEIGHT_COUNT
};

struct weight {
	const char *name;	/* "cpu": a word of options, recordings and formats, never changed */
	const char *title;	/* "CPU time", for people */
	enum weight_kind clock;	/* recordings for it are by this clock; a clock's own is itself */
	bool is_elapsed;	/* wall_ns of a sample, not cpu_ns; its clock samples threads that sleep, too */
};

extern const struct weight weights[WEIGHT_COUNT];

/* --clock takes it; the others are views of what a clock has recorded. */
bool weight_is_clock(enum weight_kind kind);

/* False, without a result, if there is none of that name. */
bool weight_by_name(const char *name, size_t length, enum weight_kind *ret_kind);

/* Can a recording by that clock show it? */
bool weight_is_in(enum weight_kind shown, enum weight_kind clock);

/* Of a sample with these times, in nanoseconds. */
uint64_t weight_of_times(enum weight_kind kind, uint64_t cpu_ns, uint64_t wall_ns);
uint64_t weight_of(enum weight_kind kind, const struct sample *sample);

#endif
