/* SPDX-License-Identifier: MIT */
/*
 * string_index: each text once, by a number, for formats with a table of strings.
 */
#ifndef LJSPY_STRING_INDEX_H
#define LJSPY_STRING_INDEX_H

#include <stdint.h>

struct string_index;

/* Empty; NULL when memory is short. */
struct string_index *string_index_new(void);
void string_index_free(struct string_index *index);

/* The number of a text, which is copied; the first has 0. -ENOMEM when memory is short. */
int64_t string_index_add(struct string_index *index, const char *text);

/* The text after this one, in the order of their numbers; the first after NULL. NULL after the last. */
char *string_index_next(struct string_index *index, const char *text);

#endif
