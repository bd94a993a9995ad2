/* SPDX-License-Identifier: MIT */
/*
 * collector_look: what a VM has allocated from one sample to the next, and for how long the collector's step
 * has run.
 */
#ifndef LJSPY_COLLECTOR_LOOK_H
#define LJSPY_COLLECTOR_LOOK_H

#include <stdint.h>

#include "memory/memory.h"
#include "output/sample/sample.h"
#include "unwind/lua/global_state.h"

/*
 * Add to *gc, of a sample taken at now_ns, of a thread that has used cpu_ns of CPU time, what was allocated
 * and how long the step has run, and note the counters for the next sample. memory is the copy of the thread,
 * or the running process.
 *
 * While a step runs, gc.threshold stays, and the step sets it anew at its end (lj_gc.c: lj_gc_step,
 * lj_gc_fullgc). So two looks in the collector that see the same threshold are in one step, if in between the
 * phase has not gone back, no marking but the step's own has ended, and next to nothing was allocated: a
 * program that has stopped the collector may ask for steps nevertheless, and they keep the threshold. A
 * finalizer has a threshold of its own, and ends what is seen of its step; so does CPU time of some looks
 * that ljspy has missed.
 */
void collector_look_add(struct memory *memory, struct global_state *global, uint64_t now_ns, uint64_t cpu_ns,
			struct sample_gc *gc);

#endif
