/* SPDX-License-Identifier: MIT */
/*
 * symbol_extents: what was learnt of a file's code, for whole stretches of it.
 *
 * A process runs through thousands of addresses, and asking the process that
 * reads symbols takes longer than all else that is done for a frame. Addresses
 * are offsets from where the file is mapped.
 */
#ifndef LJSPY_SYMBOL_EXTENTS_H
#define LJSPY_SYMBOL_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/symbols/symbol.h"

enum { SYMBOL_EXTENTS_MAX = 1 << 16 };	/* of one file; what comes later is not kept */

struct known_extent {
	struct symbol_extent extent;
	char *name;		/* of the one function there; NULL if there is none */
};

/* Begins as zeros. */
struct symbol_extents {
	struct known_extent *known;	/* by address; they do not overlap */
	size_t count, size;
};

/* NULL if nothing is known of the address. Valid until the next one is added. */
const struct known_extent *symbol_extents_find(const struct symbol_extents *extents, uint64_t address);

/* No effect if some of it is known, or when memory is short. name may be NULL. */
void symbol_extents_add(struct symbol_extents *extents, struct symbol_extent extent, const char *name);

void symbol_extents_clear(struct symbol_extents *extents);

#endif
