/* SPDX-License-Identifier: MIT */
/*
 * rows_fill: make the live view's list from the collected samples.
 */
#ifndef LJSPY_TOP_ROWS_FILL_H
#define LJSPY_TOP_ROWS_FILL_H

#include "output/recording/sample_source.h"
#include "src/top/rows.h"

/*
 * Replace the content of rows. A tree leaves out stacks without a frame that passes the
 * filter. 0, or a negative errno, and rows may be missing.
 */
int rows_fill(struct rows *rows, struct sample_source *source, const struct rows_options *options);

#endif
