/* SPDX-License-Identifier: MIT */
/*
 * heap_pprof: the paths of heaps as a profile for `go tool pprof`: inuse_space and inuse_objects.
 */
#ifndef LJSPY_HEAP_PPROF_H
#define LJSPY_HEAP_PPROF_H

#include <stdio.h>

#include "output/heap_reports/heap_subject.h"

/* Results as in struct heap_format. */
int heap_pprof_write(FILE *out, const struct heap_side *side, const struct heap_view *view);

#endif
