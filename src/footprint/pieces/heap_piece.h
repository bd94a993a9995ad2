/* SPDX-License-Identifier: MIT */
/*
 * heap_piece: what is in a piece of an allocator's memory.
 */
#ifndef LJSPY_HEAP_PIECE_H
#define LJSPY_HEAP_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/linux/pages/page_runs.h"

/* A piece of memory that an allocator cuts into chunks. */
struct heap_piece {
	uint64_t begin, end;
	bool is_told;              /* its chunks could be followed from begin to end */
	uint64_t free;             /* bytes of free chunks, in memory or not */
	struct page_sum free_here; /* of them, those in memory */
};

/* Add a free chunk to a piece. */
static inline void heap_piece_add_free(struct heap_piece *piece, const struct page_runs *runs, uint64_t begin,
				       uint64_t end)
{
	struct page_sum here = page_runs_sum(runs, begin, end);

	piece->free += end - begin;
	piece->free_here.exclusive += here.exclusive;
	piece->free_here.shared += here.shared;
}

#endif
