/* SPDX-License-Identifier: MIT */
/*
 * symbol_file: the names of native code in one ELF file, and how it is unwound.
 *
 * libdwfl reads whatever there is: .symtab, .dynsym, separate debug files by
 * build id or debuglink, mini debug info, DWARF. Nothing is looked up over a
 * network. A hostile file can make it run on and on, ask for all memory or
 * crash: symbol_server has it run where that does no harm.
 */
#ifndef LJSPY_SYMBOL_FILE_H
#define LJSPY_SYMBOL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/frame_rules.h"
#include "unwind/symbols/symbol.h"

struct symbol_source {
	int fd;			/* of the ELF file */
	uint64_t base, end;	/* where it is mapped in the target */
	const char *root;	/* the target's root directory as seen from here; "" for our own */
	const char *path;	/* of the file in that root: debug files may lie beside it */
	bool plain;		/* by symbol tables alone, without debug info */
};

struct symbol_file;

/* NULL when memory is short. Takes over the descriptor in any case, and copies the strings. */
struct symbol_file *symbol_file_open(const struct symbol_source *source);
void symbol_file_close(struct symbol_file *file);

/*
 * The functions at an address of the target: those that were inlined there,
 * innermost first, then the one that holds it. 0 if no symbol's extent holds
 * the address, be a neighbour ever so near.
 */
size_t symbol_file_find(struct symbol_file *file, uint64_t address,
			struct symbol ret_symbols[static SYMBOL_INLINES_MAX]);

/*
 * The addresses around one of which symbol_file_find() tells the same: no more than
 * that one where there is debug info. Where they have no name, an entry of .eh_frame
 * covers them, if they are more than that one.
 */
struct symbol_extent symbol_file_extent(struct symbol_file *file, uint64_t address);

/* Does an entry of .eh_frame cover the address? */
bool symbol_file_covers(struct symbol_file *file, uint64_t address);

/*
 * How to find the caller from the address, by .eh_frame or .debug_frame, the
 * one of a separate debug file too, or as it is in any PLT and in functions
 * that use no stack. False if none of these is there.
 */
bool symbol_file_rules(struct symbol_file *file, uint64_t address, struct frame_rules *ret_rules);

#endif
