/* SPDX-License-Identifier: MIT */
/*
 * symbol_extents: keeps the symbols of a file, by stretches of its code.
 *
 * A process runs through thousands of addresses, and a question to the process
 * that reads symbols takes longer than all other work on a frame. Addresses are
 * offsets from where the file is mapped.
 */
#ifndef LJSPY_SYMBOL_EXTENTS_H
#define LJSPY_SYMBOL_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/symbols/symbol.h"

enum { SYMBOL_EXTENTS_MAX = 1 << 16 }; /* of one file; later ones are not kept */

struct known_extent {
	struct symbol_extent extent;
	char *name; /* of the only function there, owned; NULL if there is none */
};

/* Start with all zeros. */
struct symbol_extents {
	struct known_extent *known; /* by address; they do not overlap */
	size_t count, size;
};

/* NULL if nothing is known of the address. Valid until the next one is added. */
const struct known_extent *symbol_extents_find(const struct symbol_extents *extents, uint64_t address);

/*
 * Copies name, which may be NULL. No effect if some of the extent is known,
 * SYMBOL_EXTENTS_MAX is reached or memory is short.
 */
void symbol_extents_add(struct symbol_extents *extents, struct symbol_extent extent, const char *name);

void symbol_extents_clear(struct symbol_extents *extents);

#endif
