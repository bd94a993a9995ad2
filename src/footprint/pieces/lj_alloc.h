/* SPDX-License-Identifier: MIT */
/*
 * lj_alloc: the memory of LuaJIT's own allocator.
 *
 * It takes segments from the kernel and cuts them into chunks. Blocks of 128 KiB or
 * more have mappings of their own, which no list holds.
 * Facts: lj_alloc.c (malloc_state, malloc_segment, malloc_chunk), the same for 64-bit
 * words in every release of 2.0 and 2.1.
 */
#ifndef LJSPY_LJ_ALLOC_H
#define LJSPY_LJ_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/footprint/pieces/heap_piece.h"
#include "src/footprint/pieces/window.h"

enum { LJ_ALLOC_SEGMENTS_MAX = 1 << 14 };

enum lj_alloc_status {
	LJ_ALLOC_OK,
	LJ_ALLOC_NONE,      /* there is no malloc_state: another allocator */
	LJ_ALLOC_UNSTEADY,  /* the list of segments has changed at each look */
	LJ_ALLOC_NO_MEMORY, /* ljspy has none left */
};

struct lj_alloc {
	struct heap_piece *segments; /* owned */
	size_t count;
};

/* Read the allocator whose malloc_state is at allocd. Free with lj_alloc_clear(). */
enum lj_alloc_status lj_alloc_read(struct window *window, uint64_t allocd, struct lj_alloc *ret_alloc);
void lj_alloc_clear(struct lj_alloc *alloc);

/*
 * Is there a large block of LuaJIT's at this page, that ends at or before end? first
 * and second are the page's first words.
 */
bool lj_alloc_large(const struct window *window, uint64_t page, uint64_t first, uint64_t second, uint64_t end,
		    uint64_t *ret_end);

#endif
