/*
 * symbols: the names of a process's native code, and how its files say it is unwound.
 *
 * A module's file is opened when one of its addresses is first asked for, and
 * read by a process of its own (symbol_server.h). Where that comes to grief
 * over a module, the module is read once more without debug info, and is left
 * without names if that fails as well. Unwind tables that it comes to grief
 * over are not asked for again.
 */
#ifndef LJSPY_SYMBOLS_H
#define LJSPY_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/frame_rules.h"
#include "unwind/image.h"
#include "unwind/symbol.h"

struct symbols;

/* NULL when memory is short. live reads images without a file; both must outlive it. */
struct symbols *symbols_new(struct image *image, struct memory *live);
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

/* CPU time that it took other processes to read symbols. */
uint64_t symbols_cpu_ns(const struct symbols *symbols);

/* The last part of a module's path, without " (deleted)"; points into path. */
const char *module_name(const struct module *module);

#endif
