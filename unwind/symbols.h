/*
 * symbols: the names of native code.
 *
 * libdwfl reads whatever there is: .symtab, .dynsym, separate debug files by
 * build id or debuglink, mini debug info, DWARF. A module is read when one of
 * its addresses is first asked for. Nothing is looked up over a network.
 */
#ifndef LJSPY_SYMBOLS_H
#define LJSPY_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/image.h"

enum {
	SYMBOL_NAME_SIZE = 512,
	SYMBOL_INLINES_MAX = 32,	/* functions inlined into each other at one address */
};

struct symbols;

/* NULL when memory is short. live reads images without a file; both must outlive it. */
struct symbols *symbols_new(struct image *image, struct memory *live);
void symbols_free(struct symbols *symbols);

/* The image's modules have been replaced: forget what was read. */
void symbols_reset(struct symbols *symbols);

/* A function at an address. The position is known from DWARF only. */
struct symbol {
	char name[SYMBOL_NAME_SIZE];	/* demangled, without a version; "sqrt@plt" in a PLT */
	char file[SYMBOL_NAME_SIZE];	/* source file without directories; "" if unknown */
	uint32_t line;			/* 0 if unknown */
};

/*
 * The functions at an address: those that were inlined there, innermost
 * first, then the one that holds it. 0 if no symbol's extent holds the
 * address, be a neighbour ever so near.
 */
size_t symbols_find(struct symbols *symbols, uint64_t address,
		    struct symbol ret_symbols[static SYMBOL_INLINES_MAX]);

/* Where the function that holds an address begins, by unwind tables; false if none covers it. */
bool symbols_function_start(struct symbols *symbols, uint64_t address, uint64_t *ret_start);

/* The last part of a module's path, without " (deleted)"; points into path. */
const char *module_name(const struct module *module);

#endif
