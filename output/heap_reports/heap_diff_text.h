/* SPDX-License-Identifier: MIT */
/*
 * heap_diff_text: what grew between two heaps, or over a series of them, as text.
 */
#ifndef LJSPY_HEAP_DIFF_TEXT_H
#define LJSPY_HEAP_DIFF_TEXT_H

#include <stdio.h>

#include "output/heap_reports/heap_subject.h"

/* Results as in struct heap_format. */
int heap_diff_text_write(FILE *out, const struct heap_side *before, const struct heap_side *after,
			 const struct heap_view *view);

/*
 * Write totals over time and what grew in every interval, as text. sides are in the order of time. All that
 * was read is in the totals; heap_compared.h says what is compared. unread: moments between them at which
 * nothing could be read. 0, -ENOMEM or -EIO.
 */
int heap_series_write(FILE *out, const struct heap_side *sides, size_t count, size_t unread,
		      const struct heap_view *view);

#endif
