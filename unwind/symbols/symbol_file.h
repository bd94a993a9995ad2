/* SPDX-License-Identifier: MIT */
/*
 * symbol_file: names and unwind rules of the native code in one ELF file.
 *
 * libdwfl reads .symtab, .dynsym, separate debug files by build id or debuglink,
 * mini debug info and DWARF, as far as they exist. It uses no network. A hostile
 * file can make it run forever, take all memory or crash; symbol_server runs it
 * where that does no harm.
 */
#ifndef LJSPY_SYMBOL_FILE_H
#define LJSPY_SYMBOL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/frame_rules.h"
#include "unwind/symbols/symbol.h"

struct symbol_source {
	int fd;             /* of the ELF file */
	uint64_t base, end; /* where it is mapped in the target */
	const char *root;   /* the target's root directory as seen from ljspy; "" for ljspy's own */
	const char *path;   /* of the file in that root: debug files may lie beside it */
	bool plain;         /* use symbol tables alone, no debug info */
};

struct symbol_file;

/* Takes ownership of the descriptor in any case, and copies the strings. NULL on failure. */
struct symbol_file *symbol_file_open(const struct symbol_source *source);
void symbol_file_close(struct symbol_file *file);

/*
 * Write the functions at an address of the target: those inlined there,
 * innermost first, then the one that holds it. Returns their number; 0 if no
 * symbol's extent holds the address, however near a neighbour.
 */
size_t symbol_file_find(struct symbol_file *file, uint64_t address,
			struct symbol ret_symbols[static SYMBOL_INLINES_MAX]);

/*
 * The addresses around this one for which symbol_file_find() finds the same; only this
 * one if there is debug info. If they are several and have no name, an entry of .eh_frame
 * covers them.
 */
struct symbol_extent symbol_file_extent(struct symbol_file *file, uint64_t address);

/* Does an entry of .eh_frame cover the address? */
bool symbol_file_covers(struct symbol_file *file, uint64_t address);

/*
 * How to find the caller from the address: by .eh_frame or .debug_frame, also
 * that of a separate debug file, or by what holds in any PLT and in functions
 * that use no stack. False if none of these applies.
 */
bool symbol_file_rules(struct symbol_file *file, uint64_t address, struct frame_rules *ret_rules);

#endif
