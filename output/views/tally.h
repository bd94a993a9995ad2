/* SPDX-License-Identifier: MIT */
/*
 * tally: how much time each function took, and how sure that is.
 *
 * Shares are parts of all weight, and samples of it are what is known of them:
 * a share p has the standard error sqrt(p (1 - p) / n), as the samples are
 * independent draws. Where their weights differ, n is not their count but what
 * counts for as many of equal weight (Kish): the square of the sum of all
 * weights by the sum of their squares.
 *
 * A program has phases, though, so samples that follow each other are alike,
 * and another recording may catch more or less of a phase. What that adds is
 * seen in how shares differ between TALLY_SLICES parts of the recording. The
 * steady error is the larger of the two: what another recording of the same
 * program may differ by.
 */
#ifndef LJSPY_TALLY_H
#define LJSPY_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/hash.h"
#include "output/recording/sample_source.h"
#include "output/views/view.h"

enum { TALLY_SLICES = 64 };

/* A function, or a line of it. */
struct tally_key {
	const struct function *function;
	uint64_t line;		/* 0 in the function view, or unknown */
};

/* Weight in a recording, and in the slice at hand; see tally_error(). */
struct tally_weight {
	uint64_t ns;
	uint64_t samples;
	uint64_t slice_ns;
	double squares, products;	/* over all slices: of slice_ns, and of it and all weight */
};

struct tally_row {
	struct tally_key key;
	struct tally_weight own;	/* of samples whose leaf this is */
	struct tally_weight total;	/* of samples that it is in, once each */
	uint64_t root_ns;		/* of samples whose outermost frame this is */
	unsigned int slice;
	uint64_t last_pile;		/* tally.c's own */
	UT_hash_handle hh;
};

/* A call, in stacks of so much weight, once each. */
struct tally_call {
	struct {
		const struct tally_row *caller, *callee;
	} key;
	uint64_t ns;
	uint64_t last_pile;		/* tally.c's own */
	UT_hash_handle hh;
};

struct tally {
	struct tally_row *rows;		/* hash tables; order them by HASH_SORT */
	struct tally_call *calls;	/* only if wanted */
	uint64_t samples;
	uint64_t all_ns;
	double sample_squares;		/* of weights of samples */
	double slice_ns[TALLY_SLICES], slice_squares;
};

/*
 * Read all of a source, which has so many samples: its slices are of as many
 * each. 0, -ENOMEM or what the source had; free with tally_clear().
 */
int tally_read(struct sample_source *source, uint64_t count, const struct view *view, bool calls,
	       struct tally *ret_tally);
void tally_clear(struct tally *tally);

/* Of all weight, from 0 to 1. */
double tally_share(const struct tally *tally, uint64_t ns);
/* The standard error of a share. */
double tally_error(const struct tally *tally, double share);
/* The steady one of a row's weight. */
double tally_steady_error(const struct tally *tally, const struct tally_weight *weight);

#endif
