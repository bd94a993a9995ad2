/* SPDX-License-Identifier: MIT */
/*
 * dynamic_symbol: where a mapped module has what it exports by a name.
 *
 * Looked up as the loader does, in .dynsym by DT_GNU_HASH, and read from
 * memory, so that it makes no difference whether there is a file.
 */
#ifndef LJSPY_DYNAMIC_SYMBOL_H
#define LJSPY_DYNAMIC_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"

/* base is where the module's ELF header is mapped. False if it does not export the name. */
bool dynamic_symbol_find(struct memory *memory, uint64_t base, const char *name,
			 uint64_t *ret_address);

#endif
