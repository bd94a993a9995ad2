/* SPDX-License-Identifier: MIT */
/*
 * label_table: the labels of frames, each frame's once, in alphabetical order.
 *
 * Pictures store a frame's label as its rank and sort siblings by rank, so the
 * same samples give the same picture in any order.
 */
#ifndef LJSPY_LABEL_TABLE_H
#define LJSPY_LABEL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/hash.h"
#include "output/sample/frame.h"

/* The size of an escaped label; longer ones are cut. */
enum { LABEL_TEXT_SIZE = 4096 };

/* No padding, because it is hashed as bytes. */
struct label_key {
	const struct function *function; /* NULL for the root: "all" */
	uint64_t line;
};

struct label {
	struct label_key key;
	char *text;         /* escaped as ESCAPE_PLAIN */
	size_t name_length; /* of the function's name at the beginning of text */
	/* where in text the place after the name begins, without its package root; at the end if none */
	size_t place;
	uint32_t rank; /* set by label_table_sort() */
	UT_hash_handle hh;
};

/* An empty table is zero in all but by_line. */
struct label_table {
	bool by_line;         /* passed to frame_label(); if false, all lines count as 0 */
	struct label *labels; /* in order through hh.next */
};

/* Add the label of a frame; function is borrowed. 0 or -ENOMEM. */
int label_table_add(struct label_table *table, const struct function *function, uint32_t line);

void label_table_sort(struct label_table *table);

/* The label of a frame; NULL if it was not added. */
const struct label *label_table_find(const struct label_table *table, const struct function *function,
				     uint32_t line);

void label_table_clear(struct label_table *table);

#endif
