/* SPDX-License-Identifier: MIT */
/*
 * live_samples: the samples of the last while, handed from the thread that
 * takes them to the one that shows them.
 *
 * Neither thread ever waits for more than the moving of a list. What nobody
 * collects grows no further than LIVE_SAMPLES_BYTES_MAX: the oldest go first.
 */
#ifndef LJSPY_LIVE_SAMPLES_H
#define LJSPY_LIVE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/sample.h"

enum { LIVE_SAMPLES_BYTES_MAX = 64 << 20 };	/* on either side */

struct live_samples;

/* NULL when memory is short. */
struct live_samples *live_samples_new(void);
void live_samples_free(struct live_samples *live);

/*---- For the thread that takes samples ----*/

/* Copied; its functions must outlive the live samples. */
void live_samples_take(struct live_samples *live, const struct sample *sample);
void live_samples_progress(struct live_samples *live, const struct figures *figures);

/*---- For the thread that shows them ----*/

/* Take over what is new, and drop samples from before since_ns (CLOCK_MONOTONIC). */
void live_samples_collect(struct live_samples *live, uint64_t since_ns);

/* What was collected. Changes and loses its place with the next collection. */
struct sample_source *live_samples_source(struct live_samples *live);
const struct figures *live_samples_figures(const struct live_samples *live);

/* No sample was dropped from then on (CLOCK_MONOTONIC). */
uint64_t live_samples_complete_since(const struct live_samples *live);

/* Did a sample get lost because memory was short? */
bool live_samples_out_of_memory(struct live_samples *live);

#endif
