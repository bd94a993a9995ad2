/* SPDX-License-Identifier: MIT */
/*
 * comparison: which functions take another part of the time than before.
 *
 * Noise is not shown as change. A function's share before and after is held
 * against the error of the difference by a two-proportion z-test: for samples
 * as independent draws, with the share of both together, or with the steady
 * errors of both (output/views/tally.h), whichever is larger. Of so many functions
 * some would pass by chance; so Holm's correction is applied to all tests of a
 * table, two for each function (own and total): the chance that any mark in it
 * is noise is at most COMPARISON_LEVEL. Functions whose share of the total is
 * below the view's min_percent (COMPARISON_MIN_PERCENT by default) on both
 * sides are not tested.
 */
#ifndef LJSPY_COMPARISON_H
#define LJSPY_COMPARISON_H

#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/view.h"

#define COMPARISON_LEVEL 0.05
#define COMPARISON_MIN_PERCENT 0.5

/* One of two recordings that are compared. Functions of both are interned in one table. */
struct side {
	const char *name;	/* of the file */
	struct sample_source *source;
	const struct session *session;
	const struct figures *figures;
};

/* As a table. 0, -ENOMEM, -EIO (the stream's own error is in errno), or what a source had. */
int comparison_write(FILE *out, const struct side *before, const struct side *after,
		     const struct view *view);

#endif
