/* SPDX-License-Identifier: MIT */
/*
 * history: what the targets did in each second of the last minutes, whatever period is shown.
 *
 * It keeps sums only, so it takes the same memory however many samples there are.
 */
#ifndef LJSPY_TOP_HISTORY_H
#define LJSPY_TOP_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "output/bills/gc_allocated.h"
#include "output/sample/sample.h"

enum { HISTORY_SECONDS = 300 };

struct history_second {
	uint64_t second; /* of CLOCK_MONOTONIC */
	uint64_t cpu_ns[VM_STATE_COUNT];
	uint64_t heap_bytes; /* of the largest heap seen; 0 if none was */
	struct gc_allocated allocated;
};

struct history {
	uint64_t begin_ns; /* there is nothing from before */
	struct history_second seconds[HISTORY_SECONDS];
};

/* Begin at this time (CLOCK_MONOTONIC), with nothing seen. */
void history_begin(struct history *history, uint64_t now_ns);

void history_add(struct history *history, const struct sample *sample);

/* Samples from before this time are missing: begin then, unless it began later. */
void history_forget(struct history *history, uint64_t before_ns);

/* Some seconds in a row. */
struct history_cell {
	uint64_t cpu_ns[VM_STATE_COUNT];
	uint64_t heap_bytes; /* as above */
	struct gc_allocated allocated;
};

/*
 * Sum the whole seconds before now in up to count cells, each of the same time, the latest
 * last. Cells are as short as they can be to show all seconds. Returns how many cells there
 * are; *ret_seconds is the time of each.
 */
size_t history_read(const struct history *history, uint64_t now_ns, size_t count, struct history_cell *cells,
		    unsigned int *ret_seconds);

#endif
