/* SPDX-License-Identifier: MIT */
/*
 * heap_pictures: flame graphs and folded stacks of heaps.
 */
#ifndef LJSPY_HEAP_PICTURES_H
#define LJSPY_HEAP_PICTURES_H

#include <stdio.h>

#include "output/heap_reports/heap_subject.h"

/* Results as in struct heap_format. before is NULL for no comparison. page: HTML, else SVG. */
int heap_flamegraph_write(FILE *out, const struct heap_side *before, const struct heap_side *side,
			  const struct heap_view *view, bool page);
int heap_folded_write(FILE *out, const struct heap_side *before, const struct heap_side *side,
		      const struct heap_view *view);

#endif
