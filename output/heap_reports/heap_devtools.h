/* SPDX-License-Identifier: MIT */
/*
 * heap_devtools: heaps as .heapsnapshot files, which the Memory panel of Chrome's DevTools opens.
 *
 * The format is V8's (src/profiler/heap-snapshot-generator.cc, HeapSnapshotJSONSerializer). Its class
 * of an object is what the object is, so that DevTools counts closures by function and cdata by C
 * type. An object's id is made from its address, so that snapshots of one process can be compared.
 */
#ifndef LJSPY_HEAP_DEVTOOLS_H
#define LJSPY_HEAP_DEVTOOLS_H

#include <stdio.h>

#include "output/heap_reports/heap_subject.h"

/* Needs the graphs. Results as in struct heap_format. */
int heap_devtools_write(FILE *out, const struct heap_side *side, const struct heap_view *view);

#endif
