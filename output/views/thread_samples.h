/* SPDX-License-Identifier: MIT */
/*
 * thread_samples: the samples of a table thread by thread, in time order within a thread.
 *
 * One pass over the source reads as many threads as there is room for. A thread
 * that has more samples than the room is read from the source on each call. So
 * memory is bounded, and so is the number of passes over the source.
 */
#ifndef LJSPY_THREAD_SAMPLES_H
#define LJSPY_THREAD_SAMPLES_H

#include <stdint.h>

#include "output/views/sample_table.h"

enum {
	THREAD_SAMPLES_ROOM = 1 << 20, /* samples in memory, 120 bytes each, or */
	THREAD_SAMPLES_SHARE = 16,     /* ... all samples divided by this, if that is more */
};

struct thread_samples;

/* The table is borrowed. NULL when memory is short. */
struct thread_samples *thread_samples_new(struct sample_table *table);
void thread_samples_free(struct thread_samples *samples);

/*
 * Pass all samples of a thread to take. Fastest in the order of the table's threads. 0 or a negative
 * errno, as sample_table_each().
 */
int thread_samples_each(struct thread_samples *samples, uint32_t thread, sample_table_take *take,
			void *context);

#endif
