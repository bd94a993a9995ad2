/* SPDX-License-Identifier: MIT */
/*
 * live_samples: hand the latest samples from the thread that takes them to the one that
 * shows them.
 *
 * Neither thread waits longer than it takes to move a list. Uncollected samples take at
 * most LIVE_SAMPLES_BYTES_MAX: the oldest are dropped first.
 */
#ifndef LJSPY_LIVE_SAMPLES_H
#define LJSPY_LIVE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/sample.h"

enum { LIVE_SAMPLES_BYTES_MAX = 64 << 20 }; /* for each thread */

struct live_samples;

/* NULL when memory is short. */
struct live_samples *live_samples_new(void);
void live_samples_free(struct live_samples *live);

/*---- For the thread that takes samples ----*/

/* Copy the sample; its functions must outlive the live samples. */
void live_samples_take(struct live_samples *live, const struct sample *sample);
void live_samples_progress(struct live_samples *live, const struct figures *figures);

/*---- For the thread that shows them ----*/

/* Gets each sample once. */
typedef void live_samples_see(void *context, const struct sample *sample);

/*
 * Collect new samples, which see gets (NULL: nobody), and drop those from before since_ns (CLOCK_MONOTONIC).
 */
void live_samples_collect(struct live_samples *live, uint64_t since_ns, live_samples_see *see, void *context);

/* The collected samples. The next collection changes and rewinds the source. */
struct sample_source *live_samples_source(struct live_samples *live);
const struct figures *live_samples_figures(const struct live_samples *live);

/* All samples since this time are there (CLOCK_MONOTONIC). */
uint64_t live_samples_complete_since(const struct live_samples *live);

/* Samples from before this time have been dropped that nobody collected; 0 if none have. */
uint64_t live_samples_unseen_until(const struct live_samples *live);

/* Was a sample lost because memory was short? */
bool live_samples_out_of_memory(struct live_samples *live);

#endif
