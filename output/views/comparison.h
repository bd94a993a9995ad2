/* SPDX-License-Identifier: MIT */
/*
 * comparison: the functions whose share of time changed between two recordings.
 *
 * The table does not mark noise as change. A two-proportion z-test compares the
 * difference of a function's shares with its error. The error is the larger of
 * two: that of independent draws, from the share and the weights of the samples
 * of both sides together, and the steady errors of both sides
 * (output/views/tally.h for both). With many functions, some would pass by
 * chance. So Holm's correction covers all tests of a table, two for each
 * function (own and total): the chance that any mark is noise is at most
 * COMPARISON_LEVEL. Functions whose share of the total is below the view's
 * min_percent (COMPARISON_MIN_PERCENT by default) on both sides are left out.
 */
#ifndef LJSPY_COMPARISON_H
#define LJSPY_COMPARISON_H

#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/changed.h"
#include "output/views/view.h"

#define COMPARISON_LEVEL 0.05
#define COMPARISON_MIN_PERCENT 0.5

/* One of the two recordings. The functions of both are interned in one table. */
struct side {
	const char *name; /* of the file */
	struct sample_source *source;
	const struct session *session;
	const struct figures *figures;
};

/* Add the functions that the table marks as changed, with the same errors as comparison_write(). */
int comparison_changed(const struct side *before, const struct side *after, const struct view *view,
		       struct changed *changed);

/*
 * Write the comparison as a table. 0, -ENOMEM, -EIO (the stream's own error is in errno) or a source's error.
 */
int comparison_write(FILE *out, const struct side *before, const struct side *after, const struct view *view);

#endif
