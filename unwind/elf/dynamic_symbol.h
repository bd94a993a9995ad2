/* SPDX-License-Identifier: MIT */
/*
 * dynamic_symbol: finds the address of a symbol that a mapped module exports.
 *
 * It searches .dynsym by DT_GNU_HASH, as the loader does. It reads memory, so
 * it needs no file.
 */
#ifndef LJSPY_DYNAMIC_SYMBOL_H
#define LJSPY_DYNAMIC_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"

/* base is where the module's ELF header is mapped. False if it does not export the name. */
bool dynamic_symbol_find(struct memory *memory, uint64_t base, const char *name, uint64_t *ret_address);

#endif
