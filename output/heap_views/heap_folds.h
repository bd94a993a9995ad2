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

/* Zeroed memory has none. */
struct heap_trees {
	struct heap_paths **at;
	size_t count, size;
	int error; /* -ENOMEM: one had no room */
};

void heap_trees_add(struct heap_trees *trees, struct heap_paths *paths);

/*
 * Where a path's keys read as one in some tree, and another has that path and tells all of its keys apart,
 * have them read as one in all. Several nodes then have the same path, and their sums add up. If a step of
 * these repeats in any of the trees, those by the same sort of keys below stay at it in all. The list has no
 * trees afterwards. 0, or -ENOMEM with part of it done.
 */
int heap_trees_fold(struct heap_trees *trees);

#endif
