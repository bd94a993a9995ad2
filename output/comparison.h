/*
 * comparison: which functions take another part of the time than before.
 *
 * Noise is not shown as change. A function's share before and after is held
 * against the error of the difference by a two-proportion z-test: for samples
 * as independent draws, with the share of both together, or with the steady
 * errors of both (output/tally.h), whichever is larger. Of so many functions
 * some would pass by chance; so Holm's correction is applied to all tests of a
 * table, two for each function (own and total): the chance that any mark in it
 * is noise is at most COMPARISON_LEVEL. Functions whose share of the total is
 * below the view's min_percent (COMPARISON_MIN_PERCENT by default) on both
 * sides are not tested.
 */
#ifndef LJSPY_COMPARISON_H
#define LJSPY_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "output/format.h"
#include "output/tally.h"

#define COMPARISON_LEVEL 0.05
#define COMPARISON_MIN_PERCENT 0.5

/* A share of all time, on both sides. */
struct change {
	double before, after;
	double error;		/* of the difference, one standard error */
	double p;		/* that there is such a difference by chance, before correction */
	bool significant;	/* after correction */
};

struct comparison_row {
	struct tally_key key;
	struct change own, total;
};

/*
 * The functions of two tallies by how much they have changed, significant
 * changes first. 0 or -ENOMEM; rows are to be freed.
 */
int comparison_rows(const struct tally *before, const struct tally *after, double min_share,
		    struct comparison_row **ret_rows, size_t *ret_count);

/* As a table. 0, -ENOMEM, -EIO (the stream's own error is in errno), or what a source had. */
int comparison_write(FILE *out, const struct side *before, const struct side *after,
		     const struct view *view);

#endif
