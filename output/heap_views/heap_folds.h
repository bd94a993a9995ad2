/* SPDX-License-Identifier: MIT */
/*
 * heap_folds: trees of several moments that tell a table's keys apart in the same places.
 *
 * A table with few keys at one moment may have many at the next. Each tree by itself would tell its keys
 * apart, or not, and what lies below would seem to come or go.
 */
#ifndef LJSPY_HEAP_FOLDS_H
#define LJSPY_HEAP_FOLDS_H

#include <stddef.h>

#include "output/heap_views/heap_paths.h"

/*
 * Where keys read as one in any of the trees, have them read so in all. Several nodes then have the same
 * path, and their sums add up. 0, or -ENOMEM with part of it done.
 */
int heap_paths_fold(struct heap_paths *const *trees, size_t count);

#endif
