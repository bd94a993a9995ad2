/* SPDX-License-Identifier: MIT */
/*
 * tally: the time that each function took, or what it allocated, and the error of that.
 *
 * A share is a part of all weight, estimated from samples. If samples are
 * independent draws, a share p has the standard error sqrt(p (1 - p) / n). If
 * weights differ, n is not the number of samples but the equivalent number of
 * samples of equal weight (Kish): the square of the sum of all weights divided
 * by the sum of their squares.
 *
 * That is too little for what has few samples that are heavier than others, as
 * who allocates rarely but much at once: then the samples of the share count by
 * the squares of their weights and (1 - p)^2, the others by theirs and p^2. It
 * would be too little where a share has only light samples by chance: so the
 * error is the larger of the two.
 *
 * But a program has phases: successive samples are alike, and another recording
 * may catch more or less of a phase. The differences of shares between
 * TALLY_SLICES parts of the recording show that error. The steady error is the
 * larger of the two errors: how much another recording of the same program may
 * differ.
 */
#ifndef LJSPY_TALLY_H
#define LJSPY_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/hash.h"
#include "output/recording/sample_source.h"
#include "output/bills/gc_bill.h"
#include "output/bills/request_bill.h"
#include "output/views/view.h"

enum { TALLY_SLICES = 64 };

/* A function, or a line of it. */
struct tally_key {
	const struct function *function;
	uint64_t line; /* 0 in the function view or if unknown */
};

/*
 * Weight in a recording, and in the current slice; see tally_steady_error(). Here and below, ns are
 * the view's weight, which may be no time.
 */
struct tally_weight {
	uint64_t ns;
	uint64_t samples;
	double sample_squares; /* sum of the squares of the samples' weights */
	uint64_t slice_ns;
	double squares, products; /* sums over slices: of slice_ns squared, of slice_ns * all weight */
};

struct tally_row {
	struct tally_key key;
	struct tally_weight own; /* of samples with this leaf, or this frame below a leaf that it allocated */
	struct tally_weight total; /* of samples with this row in the stack, each once */
	uint64_t root_ns;          /* of samples with this outermost frame */
	double root_squares;       /* ... of their weights */
	uint64_t collector_ns;     /* of samples in which a collector ran, with this innermost Lua function */
	double collector_squares;  /* ... of their weights */
	unsigned int slice;
	uint64_t last_pile; /* private to tally.c */
	UT_hash_handle hh;
};

/* A call, with the weight of the stacks that contain it, each once. */
struct tally_call {
	struct {
		const struct tally_row *caller, *callee;
	} key;
	uint64_t ns;
	double squares;     /* of the samples' weights */
	uint64_t last_pile; /* private to tally.c */
	UT_hash_handle hh;
};

struct tally {
	struct tally_row *rows;   /* hash tables; sort them with HASH_SORT */
	struct tally_call *calls; /* NULL unless asked for */
	uint64_t samples;
	uint64_t all_ns;
	struct gc_bill gc;
	struct request_bill requests;
	double sample_squares; /* sum of the squares of sample weights */
	double slice_ns[TALLY_SLICES], slice_squares;
};

/*
 * Read all of a source, which has count samples; each slice has the same
 * number. calls asks for tally.calls. 0, -ENOMEM or the source's error; free
 * with tally_clear().
 */
int tally_read(struct sample_source *source, uint64_t count, const struct view *view, bool calls,
	       struct tally *ret_tally);
void tally_clear(struct tally *tally);

/* The share of ns in all weight, from 0 to 1. */
double tally_share(const struct tally *tally, uint64_t ns);
/*
 * The standard error of a share, for independent samples, from the sums of the squares of the weights of its
 * samples and of all, both weights being parts of the sum of all.
 */
double tally_error_of(double share, double squares, double all_squares);
/* That of the share of ns, whose samples' weights have this sum of squares. */
double tally_error(const struct tally *tally, uint64_t ns, double squares);
/* The steady error of a row's share. */
double tally_steady_error(const struct tally *tally, const struct tally_weight *weight);

#endif
