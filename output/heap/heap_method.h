/* SPDX-License-Identifier: MIT */
/*
 * heap_method: the words for how a heap was read. They are part of formats and never change.
 */
#ifndef LJSPY_HEAP_METHOD_H
#define LJSPY_HEAP_METHOD_H

#include <stdbool.h>

#include "output/heap/heap_account.h"

/* "asleep" */
const char *heap_method_name(enum heap_method method);
/* False, with nothing written, for another word. */
bool heap_method_by_name(const char *name, enum heap_method *ret_method);

/* For people: "while it slept, without a stop" */
const char *heap_method_text(enum heap_method method);

#endif
