/* SPDX-License-Identifier: MIT */
/*
 * thread_samples: the samples of a table, thread by thread, each thread's in the order of time.
 *
 * As many threads as have room are read from the source at once; those of a
 * thread that has no room by itself are read whenever they are wanted. So
 * memory is bounded, and the source is read a bounded number of times.
 */
#ifndef LJSPY_THREAD_SAMPLES_H
#define LJSPY_THREAD_SAMPLES_H

#include <stdint.h>

#include "output/views/sample_table.h"

enum {
	THREAD_SAMPLES_ROOM = 1 << 20,	/* samples in memory, of 56 bytes each, or */
	THREAD_SAMPLES_SHARE = 16,	/* this part of all if that is more */
};

struct thread_samples;

/* The table must live as long. NULL when memory is short. */
struct thread_samples *thread_samples_new(struct sample_table *table);
void thread_samples_free(struct thread_samples *samples);

/* All of a thread. Quickest if threads are taken in the table's order. 0 or a negative errno, as sample_table_each(). */
int thread_samples_each(struct thread_samples *samples, uint32_t thread, sample_table_take *take, void *context);

#endif
