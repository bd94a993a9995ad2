/* SPDX-License-Identifier: MIT */
/*
 * sampler_allocations: samples of allocations, of one target.
 *
 * Each look at a thread tells what its VMs have allocated since the last one; a look that finds the thread
 * inside of the allocator is a sample. Its share (allocation_shares.h) is known some looks later, so samples
 * are kept until then.
 */
#ifndef LJSPY_SAMPLER_ALLOCATIONS_H
#define LJSPY_SAMPLER_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "output/sample/figures.h"
#include "output/sample/functions.h"
#include "output/sample/sample.h"
#include "src/inspect/lua_process.h"
#include "src/linux/clocks/cpu_clock.h"
#include "src/linux/threads/threads.h"

struct allocations;

/* cpu_ns: the target's CPU time so far. process_name must outlive the result. NULL when memory is short. */
struct allocations *allocations_new(pid_t pid, const char *process_name, uint64_t cpu_ns);
void allocations_free(struct allocations *allocations);

/* The recording begins only now, with so much CPU time. */
void allocations_open(struct allocations *allocations, uint64_t cpu_ns);

/* A thread was captured, and is held or runs on: read what its VMs have allocated. */
void allocations_note(struct allocations *allocations, struct lua_process *process, bool is_held);

/* It was measured while it was held. */
struct allocating_thread {
	struct threads *threads;
	struct thread *thread;
	uint64_t *span_ns; /* when the next span is due, of any thread: ljspy sleeps before one */
	uint64_t *
		series_ns; /* when the next series is due, of any thread: ljspy does nothing else meanwhile */
	bool is_alone;     /* at this look, no other thread of the process had a CPU */
	uint64_t wait_ns;  /* a random part of the time between looks, to wait before a span */
};

/* The noted look has no sample. Count what was allocated up to it. */
void allocations_skip(struct allocations *allocations, const struct cpu_clock *clock);

/*
 * The thread runs on, and was unwound: count what was allocated up to the noted look, take the sample, if it
 * is one, and look at the objects that are new since it was held. Does nothing if no look was noted since the
 * last one was taken or skipped. Texts of the sample are copied, but for its process_name and phase.
 */
void allocations_take(struct allocations *allocations, struct lua_process *process,
		      const struct cpu_clock *clock, const struct allocating_thread *thread,
		      struct functions *functions, const struct sample *sample);

typedef void allocations_deliver(void *context, const struct sample *sample);

/*
 * Deliver the samples whose shares are known, at most a second after they were taken; with all, also those
 * that are not, and then, as lost, what was allocated and has no sample. Adds to
 * figures how sure their bytes are.
 */
void allocations_divide(struct allocations *allocations, bool all, struct figures *figures,
			allocations_deliver *deliver, void *context);

/* functions_keep() for what the samples refer to. */
void allocations_keep_functions(const struct allocations *allocations);

#endif
