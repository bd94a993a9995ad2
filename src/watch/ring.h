/* SPDX-License-Identifier: MIT */
/*
 * ring: the last samples, in memory, as recordings that follow each other.
 *
 * The oldest recording goes as a whole, so the ring holds its span and at most an eighth
 * of it more. A ring has few bytes for a sample, as a recording has, and points to nothing of a sample.
 */
#ifndef LJSPY_RING_H
#define LJSPY_RING_H

#include <stddef.h>
#include <stdint.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/sample.h"
#include "output/sample/session.h"

enum { RING_PARTS = 8 };

struct ring;

struct ring_options {
	uint64_t span_ns;
	size_t bytes; /* at most, of packed samples */
	enum weight_kind clock;
};

/* NULL when memory is short. */
struct ring *ring_new(const struct ring_options *options);
void ring_free(struct ring *ring);

/* 0 or a negative errno, as below: then this sample is missing. */
int ring_add(struct ring *ring, const struct sample *sample);

/* After this call the ring points to no function. */
void ring_forget_functions(struct ring *ring);

/*
 * Call this about once a second: so_far are the figures of the run. 0 or a negative errno, which is the
 * file's own: then samples are missing, or will be.
 */
int ring_advance(struct ring *ring, uint64_t now_ns, const struct figures *so_far);

/* When the ring begins, and what the figures of the run were then. Both only after ring_advance(). */
uint64_t ring_begin_ns(const struct ring *ring);
const struct figures *ring_before(const struct ring *ring);

/*
 * Pass all samples to take, and forget them. Their functions live until ring_pour() returns. 0 or a
 * negative errno, as above: then samples are missing.
 */
int ring_pour(struct ring *ring, sample_take *take, void *context);

/* Forget all samples. */
void ring_clear(struct ring *ring);

#endif
