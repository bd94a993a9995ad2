/* SPDX-License-Identifier: MIT */
/*
 * glibc_heap: the memory of glibc's malloc().
 *
 * The main arena is the memory between brk's start and end, which /proc calls
 * [heap]. Other arenas consist of heaps at multiples of 64 MiB. Blocks of 128 KiB or more
 * (the limit grows with what the program frees) have mappings of their own.
 * Facts: malloc/malloc.c (malloc_chunk, sysmalloc()), malloc/arena.c (heap_info), 2.26 to 2.41.
 *
 * Small chunks that threads keep for the next malloc() (tcache, fastbins) look like used ones.
 */
#ifndef LJSPY_GLIBC_HEAP_H
#define LJSPY_GLIBC_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "src/footprint/pieces/heap_piece.h"
#include "src/footprint/pieces/window.h"

enum { GLIBC_HEAP_ALIGNMENT = 64 << 20 };

/* Follow the chunks of the main arena, which is [begin, end). ret_piece->is_told: they lead to its end. */
void glibc_heap_main(struct window *window, uint64_t begin, uint64_t end, struct heap_piece *ret_piece);

/* Is there a heap of another arena at base, that ends at or before limit? Follow its chunks. */
bool glibc_heap_other(struct window *window, uint64_t base, uint64_t limit, struct heap_piece *ret_piece,
		      bool *ret_is_first);

/*
 * May a large block of glibc's begin at this page, and end at or before end? first and
 * second are the page's first words. Two words prove little: judge by its neighbours, too.
 */
bool glibc_heap_large(uint64_t page, uint64_t first, uint64_t second, uint64_t end, uint64_t *ret_end);

#endif
