/* SPDX-License-Identifier: MIT */
/*
 * gc_bill: what the collectors of the VMs took, by what they did.
 */
#ifndef LJSPY_GC_BILL_H
#define LJSPY_GC_BILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/bills/gc_allocated.h"
#include "output/sample/sample.h"

/* A step of a collector that two samples or more have met, from the first to the last of them. */
struct gc_step {
	pid_t tid;
	uint64_t begin_ns;         /* CLOCK_MONOTONIC; a moment late */
	uint64_t length_ns;        /* it took at least so long; 0: there is no such step */
	enum gc_phase first, last; /* phases that were seen */
	struct frame frame; /* the innermost Lua function; its function is NULL if there is none. Borrowed. */
};

enum { GC_STEPS_MAX = 5 };

/* Zeroed memory is an empty bill. */
struct gc_bill {
	uint64_t phase_ns[GC_PHASE_COUNT];
	double phase_squares[GC_PHASE_COUNT]; /* sums of the squares of the samples' weights */
	uint64_t cycles;                /* at least so many markings have ended: samples see one in between */
	uint64_t heap_least, heap_most; /* bytes of a VM's heap at samples; 0 if unknown */
	pid_t heap_tid;                 /* whose Lua had the first heap; 0 if none has */
	bool has_heaps; /* other threads had one, too: of another VM, or of the same that threads share */
	struct gc_step steps[GC_STEPS_MAX]; /* the longest ones, the longest first */
	struct gc_allocated allocated;
};

/* Add a sample with this weight. */
void gc_bill_add(struct gc_bill *bill, const struct sample *sample, uint64_t ns);

/* Did a collector run at any sample? */
bool gc_bill_has_any(const struct gc_bill *bill);

#endif
