/* SPDX-License-Identifier: MIT */
/*
 * string_index: number texts, each once, for formats with a string table.
 */
#ifndef LJSPY_STRING_INDEX_H
#define LJSPY_STRING_INDEX_H

#include <stdint.h>

struct string_index;

/* A new empty index; NULL when memory is short. */
struct string_index *string_index_new(void);
void string_index_free(struct string_index *index);

/* The number of a text, which is copied; the first text has 0. -ENOMEM when memory is short. */
int64_t string_index_add(struct string_index *index, const char *text);

/* The text with the next number; for NULL, the first text. NULL after the last. */
char *string_index_next(struct string_index *index, const char *text);

#endif
