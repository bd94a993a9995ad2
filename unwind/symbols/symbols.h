/* SPDX-License-Identifier: MIT */
/*
 * symbols: the names of a process's native code, and how its files say it is unwound.
 *
 * A module's file is opened when one of its addresses is first asked for.
 */
#ifndef LJSPY_SYMBOLS_H
#define LJSPY_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/elf/frame_rules.h"
#include "unwind/elf/image.h"
#include "unwind/symbols/symbol.h"

struct symbol_files;
struct symbols;

/*
 * Files are read through those given, for whichever processes have them mapped;
 * NULL if there are no others. live reads images without a file. All must
 * outlive it. NULL when memory is short.
 */
struct symbols *symbols_new(struct image *image, struct memory *live, struct symbol_files *files);
void symbols_free(struct symbols *symbols);

/* The image's modules have been replaced: forget what was read. */
void symbols_reset(struct symbols *symbols);

/* As symbol_file_find(), for any address. */
size_t symbols_find(struct symbols *symbols, uint64_t address,
		    struct symbol ret_symbols[static SYMBOL_INLINES_MAX]);

/* Where the function that holds an address begins, by unwind tables; false if none covers it. */
bool symbols_function_start(struct symbols *symbols, uint64_t address, uint64_t *ret_start);

/* As symbol_file_rules(), for any address. */
bool symbols_rules(struct symbols *symbols, uint64_t address, struct frame_rules *ret_rules);

/* The last part of a module's path, without " (deleted)"; points into path. */
const char *module_name(const struct module *module);

#endif
