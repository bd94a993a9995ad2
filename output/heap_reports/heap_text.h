/* SPDX-License-Identifier: MIT */
/*
 * heap_text: heaps as text for people.
 */
#ifndef LJSPY_HEAP_TEXT_H
#define LJSPY_HEAP_TEXT_H

#include <stdio.h>

#include "output/heap_reports/heap_subject.h"

/* Results as in struct heap_format. */
int heap_text_write(FILE *out, const struct heap_side *side, const struct heap_view *view);

#endif
