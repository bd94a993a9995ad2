/* SPDX-License-Identifier: MIT */
/*
 * sum: several sources as one.
 *
 * Samples come in time order. A shift of its times brings the clock of each
 * source in line with the others. Nothing is read of a source before its time comes.
 */
#ifndef LJSPY_SUM_H
#define LJSPY_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "output/recording/sample_source.h"

struct sum_part {
	struct sample_source *source; /* borrowed */
	uint64_t shift_ns;            /* added to its times, modulo 2^64 */
	uint64_t begin_ns;            /* no sample is earlier, by its own times; 0 if unknown */
};

struct sum;

/* parts are copied. NULL when memory is short. */
struct sum *sum_new(const struct sum_part *parts, size_t count);
void sum_free(struct sum *sum);

/* The sum as a source, which the sum owns. */
struct sample_source *sum_samples(struct sum *sum);

#endif
