/* SPDX-License-Identifier: MIT */
/*
 * label_table: what frames are called, each text once, in alphabetical order.
 *
 * Pictures store a frame's label as its rank and put siblings in that order,
 * so that the same samples give the same picture however they came.
 */
#ifndef LJSPY_LABEL_TABLE_H
#define LJSPY_LABEL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/hash.h"
#include "output/sample/frame.h"

/* A label that is longer when escaped is cut. */
enum { LABEL_TEXT_SIZE = 4096 };

/* Without padding: it is hashed as bytes. */
struct label_key {
	const struct function *function;	/* NULL for the root: "all" */
	uint64_t line;
};

struct label {
	struct label_key key;
	char *text;		/* escaped as ESCAPE_PLAIN */
	uint32_t rank;		/* set by label_table_sort() */
	UT_hash_handle hh;
};

/* All zero bytes but for by_line is an empty table. */
struct label_table {
	bool by_line;		/* as frame_label() has it; else lines are taken for 0 */
	struct label *labels;	/* in order through hh.next */
};

/* 0 or -ENOMEM. */
int label_table_add(struct label_table *table, const struct function *function, uint32_t line);

void label_table_sort(struct label_table *table);

/* NULL if it was not added. */
const struct label *label_table_find(const struct label_table *table,
				     const struct function *function, uint32_t line);

void label_table_clear(struct label_table *table);

#endif
