/* SPDX-License-Identifier: MIT */
/*
 * amount_text: bytes, counts and weights in text for people.
 */
#ifndef LJSPY_AMOUNT_TEXT_H
#define LJSPY_AMOUNT_TEXT_H

#include <stdint.h>

#include "output/sample/weight.h"

enum { AMOUNT_SIZE = 40 };

/* All return ret_text. "43.7 MB", "812 B". */
const char *amount_bytes(uint64_t bytes, char ret_text[static AMOUNT_SIZE]);
/* "12,345" */
const char *amount_number(uint64_t number, char ret_text[static AMOUNT_SIZE]);

/* A weight in a column: "1751.4" of milliseconds, "43.7 MB", "12,345" of objects. */
const char *amount_in_column(enum weight_kind kind, uint64_t weight, char ret_text[static AMOUNT_SIZE]);
/* What such a column is of: "ms", "bytes", "objects". */
const char *amount_column(enum weight_kind kind);

/* A weight by itself: "1751.4 ms", "43.7 MB", "12,345 objects". */
const char *amount_alone(enum weight_kind kind, uint64_t weight, char ret_text[static AMOUNT_SIZE]);

#endif
