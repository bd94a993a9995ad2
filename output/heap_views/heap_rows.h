/* SPDX-License-Identifier: MIT */
/*
 * heap_rows: the paths of a heap that a table shows, the heaviest first.
 */
#ifndef LJSPY_HEAP_ROWS_H
#define LJSPY_HEAP_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "output/heap_views/heap_groups.h"
#include "output/heap_views/heap_paths.h"

/*
 * Paths that hold each other are a chain if each has nearly all from the next. Of a chain a table shows
 * the first path that stands for many things, such as a cache's entries; without one, the last path.
 */
enum { HEAP_CHAIN_PERCENT = 90 };

/* Is part nearly all of whole? */
static inline bool heap_is_nearly_all(uint64_t part, uint64_t whole)
{
	return part >= whole / 100 * HEAP_CHAIN_PERCENT;
}

/*
 * Groups by the text of their path, sorted, with what is retained, none of it twice: of all nodes that retain
 * at least min_bytes. chains false: without paths all of whose nodes are in chains and not what a table shows
 * of them. 0 or -ENOMEM.
 */
int heap_rows_make(const struct heap_paths *paths, uint64_t min_bytes, bool chains,
		   struct heap_group **ret_rows);

#endif
