/*
 * symbols: the names of native code.
 *
 * libdwfl reads whatever there is: .symtab, .dynsym, separate debug files by
 * build id or debuglink, mini debug info. A module is read when one of its
 * addresses is first asked for.
 */
#ifndef LJSPY_SYMBOLS_H
#define LJSPY_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/image.h"

struct symbols;

/* NULL when memory is short. The image must outlive it. */
struct symbols *symbols_new(struct image *image);
void symbols_free(struct symbols *symbols);

/* The image's modules have been replaced: forget what was read. */
void symbols_reset(struct symbols *symbols);

/*
 * The symbol whose extent holds the address; NULL if there is none, be a
 * neighbour ever so near. Valid until symbols_reset().
 */
const char *symbols_find(struct symbols *symbols, uint64_t address);

/* The last part of a module's path, without " (deleted)"; points into path. */
const char *module_name(const struct module *module);

#endif
