/* SPDX-License-Identifier: MIT */
/*
 * heap_diff_text: what grew between two heaps, or over a series of them, as text.
 *
 * heap_series_write() of output/heap_reports/heap_report.h is here, too.
 */
#ifndef LJSPY_HEAP_DIFF_TEXT_H
#define LJSPY_HEAP_DIFF_TEXT_H

#include "output/heap_reports/heap_report.h"

/* Results as in struct heap_format. */
int heap_diff_text_write(FILE *out, const struct heap_side *before, const struct heap_side *after,
			 const struct heap_view *view);

#endif
