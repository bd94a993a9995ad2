/* SPDX-License-Identifier: MIT */
/*
 * heap_file_format: what writer and reader of heap files share; see doc/HEAP_FILE.md.
 *
 * The numbers of enums are part of the format: append new values at the end.
 */
#ifndef LJSPY_HEAP_FILE_FORMAT_H
#define LJSPY_HEAP_FILE_FORMAT_H

#include <assert.h>
#include <stddef.h>

#include "output/heap/heap_account.h"
#include "output/heap/heap_graph.h"

enum heap_record {
	HEAP_RECORD_PROPERTY = 1,
	HEAP_RECORD_TEXT,
	HEAP_RECORD_NODE,
	HEAP_RECORD_EDGE,
	HEAP_RECORD_VM_END,
	HEAP_RECORD_END,
};

/* The property that repeats the header's version: no checksum covers the header. */
#define HEAP_PROPERTY_VERSION "version"

enum { HEAP_EDGE_WEAK_BIT = 1 << 7 };

/* A number of an account. Members have 64 bits, or 32; those of a heap_figure may be unknown. */
struct heap_property {
	const char *name;
	size_t offset;
	enum { PROPERTY_64, PROPERTY_32, PROPERTY_FIGURE } kind;
};

extern const struct heap_property heap_properties[];
extern const size_t heap_property_count;

/* The literal that equals text; "?" if no state of a collector is called that. */
const char *heap_gc_state_literal(const char *text);

static_assert(HEAP_KIND_ROOT == 0 && HEAP_KIND_STRING == 1 && HEAP_KIND_UPVALUE == 2 &&
		      HEAP_KIND_THREAD == 3 && HEAP_KIND_PROTO == 4 && HEAP_KIND_FUNCTION == 5 &&
		      HEAP_KIND_TRACE == 6 && HEAP_KIND_CDATA == 7 && HEAP_KIND_TABLE == 8 &&
		      HEAP_KIND_USERDATA == 9 && HEAP_KIND_VM == 10,
	      "kinds of nodes are in heap files");
static_assert(HEAP_HOLDS_ROOT == 0 && HEAP_HOLDS_FIELD == 1 && HEAP_HOLDS_INDEX == 2 &&
		      HEAP_HOLDS_VALUE == 3 && HEAP_HOLDS_KEY == 4 && HEAP_HOLDS_METATABLE == 5 &&
		      HEAP_HOLDS_ENVIRONMENT == 6 && HEAP_HOLDS_UPVALUE == 7 && HEAP_HOLDS_CLOSED == 8 &&
		      HEAP_HOLDS_LOCAL == 9 && HEAP_HOLDS_SLOT == 10 && HEAP_HOLDS_PROTO == 11 &&
		      HEAP_HOLDS_CONSTANT == 12 && HEAP_HOLDS_TRACE == 13 && HEAP_HOLDS_OTHER == 14,
	      "holds are in heap files");
static_assert(HEAP_DEAD == 1 && HEAP_FINALIZER == 2 && HEAP_WEAK == 4, "flags of nodes are in heap files");
/* Is the edge's last member a text (detail), not a number? */
static inline bool heap_hold_has_detail(unsigned int hold)
{
	return hold == HEAP_HOLDS_LOCAL || hold == HEAP_HOLDS_SLOT;
}

#endif
