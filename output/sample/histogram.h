/* SPDX-License-Identifier: MIT */
/*
 * histogram: how values of any size are distributed, in fixed memory.
 *
 * Log-linear: each power of two is divided into equal buckets, so that a
 * percentile is within 1 / HISTOGRAM_STEPS of the true value (3 %), whatever
 * its size. All zero bytes is an empty histogram.
 */
#ifndef LJSPY_HISTOGRAM_H
#define LJSPY_HISTOGRAM_H

#include <stdint.h>

enum {
	HISTOGRAM_STEP_BITS = 5,
	HISTOGRAM_STEPS = 1 << HISTOGRAM_STEP_BITS,
	HISTOGRAM_BUCKETS = (64 - HISTOGRAM_STEP_BITS + 1) * HISTOGRAM_STEPS,
};

struct histogram {
	uint64_t count;
	uint64_t max;		/* exact */
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);

/* Add all values of another one. */
void histogram_merge(struct histogram *histogram, const struct histogram *other);

/*
 * The smallest value that per_mille of all values do not exceed: 500 is the
 * median, 990 the 99th percentile. 0 when the histogram is empty.
 */
uint64_t histogram_percentile(const struct histogram *histogram, unsigned per_mille);

#endif
