/* SPDX-License-Identifier: MIT */
/*
 * histogram: the distribution of 64-bit values, in fixed memory.
 *
 * Log-linear: each power of two is divided into equal buckets. A percentile of
 * any size is within 1 / HISTOGRAM_STEPS (3 %) of the true value. Zeroed memory
 * is an empty histogram.
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
	uint64_t max; /* exact, unless values were taken off: then as a percentile */
	uint64_t sum; /* of all values; recordings do not have it */
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);

/* Add all values of another histogram. */
void histogram_merge(struct histogram *histogram, const struct histogram *other);

/* Take off the values of an earlier state of the same histogram. */
void histogram_subtract(struct histogram *histogram, const struct histogram *earlier);

/*
 * The smallest value that per_mille / 1000 of all values do not exceed: 500
 * is the median, 990 the 99th percentile. 0 when the histogram is empty.
 */
uint64_t histogram_percentile(const struct histogram *histogram, unsigned per_mille);

#endif
