/* SPDX-License-Identifier: MIT */
/*
 * heap_json: heaps for scripts, as doc/JSON.md says.
 */
#ifndef LJSPY_HEAP_JSON_H
#define LJSPY_HEAP_JSON_H

#include <stdio.h>

#include "output/heap_reports/heap_subject.h"

enum {
	HEAP_JSON_VERSION = 1,
	HEAP_JSON_ROWS = 1000, /* paths, and groups of each kind, at most */
};

/* Results as in struct heap_format. */
int heap_json_write(FILE *out, const struct heap_side *side, const struct heap_view *view);

#endif
