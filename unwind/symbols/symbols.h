/* SPDX-License-Identifier: MIT */
/*
 * symbols: names and unwind rules of a process's native code, from its files.
 *
 * The first question about an address in a module opens the module's file.
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
 * files reads the files, and may be shared by several processes' symbols; if it
 * is NULL, they get their own. live reads images without a file. All must
 * outlive the result. Returns NULL when memory is short.
 */
struct symbols *symbols_new(struct image *image, struct memory *live, struct symbol_files *files);
void symbols_free(struct symbols *symbols);

/* Forget all modules. Call it when the image's modules have been replaced. */
void symbols_reset(struct symbols *symbols);

/* As symbol_file_find(), for an address in any module. */
size_t symbols_find(struct symbols *symbols, uint64_t address,
		    struct symbol ret_symbols[static SYMBOL_INLINES_MAX]);

/* The start of the function that holds an address, by unwind tables; false if none covers it. */
bool symbols_function_start(struct symbols *symbols, uint64_t address, uint64_t *ret_start);

/* As symbol_file_rules(), for an address in any module. */
bool symbols_rules(struct symbols *symbols, uint64_t address, struct frame_rules *ret_rules);

/* The last part of a module's path; points into path. */
const char *module_name(const struct module *module);

#endif
