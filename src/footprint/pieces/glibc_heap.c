/* SPDX-License-Identifier: MIT */
#include "src/footprint/pieces/glibc_heap.h"

enum {
	TRIES = 4, /* the program may change what is being read */
	WORD = 8,
	/* struct malloc_chunk */
	CHUNK_SIZE = 8,
	PREV_INUSE = 1,
	IS_MMAPPED = 2,
	FLAGS = 7,
	CHUNK_MIN = 32,
	CHUNK_ALIGNMENT = 16,
	FENCEPOST = 16,
	/* struct heap_info: ar_ptr, prev, size, mprotect_size, since 2.35 pagesize, padding */
	HEAP_PREV = 8,
	HEAP_SIZE = 16,
	HEAP_MPROTECT_SIZE = 24,
	HEAP_INFO_MIN = 32,
	HEAP_INFO_MAX = 128,
	/* struct malloc_state */
	ARENA_MIN = 2000,
	ARENA_MAX = 2304,
};

/*
 * Follow chunks from begin to the end of the piece. A chunk is free if the next one
 * says so; the last one is the top, or two fenceposts follow it. False if the chunks do
 * not lead to the end.
 */
static bool follow_chunks(struct window *window, uint64_t begin, struct heap_piece *piece)
{
	uint64_t at = begin, word;

	piece->free = 0;
	piece->free_here = (struct page_sum){ 0, 0 };
	if (!window_word(window, at + CHUNK_SIZE, &word) || !(word & PREV_INUSE))
		return false;
	for (;;) {
		uint64_t size = word & ~(uint64_t)FLAGS, next = at + size;

		if (size == FENCEPOST && piece->end - at == 2 * FENCEPOST)
			return true;
		if ((word & IS_MMAPPED) || size < CHUNK_MIN || size % CHUNK_ALIGNMENT ||
		    size > piece->end - at)
			return false;
		if (next == piece->end) {
			heap_piece_add_free(piece, window->runs, at, next);
			return true;
		}
		if (piece->end - next < 2 * WORD || !window_word(window, next + CHUNK_SIZE, &word))
			return false;
		if (!(word & PREV_INUSE))
			heap_piece_add_free(piece, window->runs, at, next);
		at = next;
	}
}

/* Try each place where the first chunk may be, first to last. */
static void follow_from(struct window *window, uint64_t first, uint64_t last, struct heap_piece *piece)
{
	for (unsigned i = 0; i < TRIES && !piece->is_told; i++) {
		window_forget(window);
		for (uint64_t at = first; at <= last && !piece->is_told; at += CHUNK_ALIGNMENT)
			piece->is_told = follow_chunks(window, at, piece);
	}
	if (piece->is_told)
		return;
	piece->free = 0;
	piece->free_here = (struct page_sum){ 0, 0 };
}

void glibc_heap_main(struct window *window, uint64_t begin, uint64_t end, struct heap_piece *ret_piece)
{
	*ret_piece = (struct heap_piece){ .begin = begin, .end = end };
	/* The kernel chooses where brk starts; malloc aligns the first chunk. */
	follow_from(window, begin,
		    end - begin > PAGE_RUNS_PAGE ? begin + PAGE_RUNS_PAGE - CHUNK_ALIGNMENT : begin,
		    ret_piece);
}

bool glibc_heap_other(struct window *window, uint64_t base, uint64_t limit, struct heap_piece *ret_piece,
		      bool *ret_is_first)
{
	struct heap_piece piece = { .begin = base };
	uint64_t arena, prev, size, writable, offset;

	if (!window_word(window, base, &arena) || !window_word(window, base + HEAP_PREV, &prev) ||
	    !window_word(window, base + HEAP_SIZE, &size) ||
	    !window_word(window, base + HEAP_MPROTECT_SIZE, &writable))
		return false;
	offset = arena % GLIBC_HEAP_ALIGNMENT;
	if (size == 0 || size % PAGE_RUNS_PAGE || writable % PAGE_RUNS_PAGE || size > writable ||
	    writable > GLIBC_HEAP_ALIGNMENT || size > limit - base || arena % CHUNK_ALIGNMENT ||
	    offset < HEAP_INFO_MIN || offset > HEAP_INFO_MAX || prev % GLIBC_HEAP_ALIGNMENT ||
	    (arena - offset == base) != (prev == 0))
		return false;
	piece.end = base + size;
	if (prev)
		follow_from(window, base + HEAP_INFO_MIN, base + HEAP_INFO_MAX, &piece);
	else
		follow_from(window, arena + ARENA_MIN, arena + ARENA_MAX, &piece);
	*ret_piece = piece;
	*ret_is_first = prev == 0;
	return true;
}

bool glibc_heap_large(uint64_t page, uint64_t first, uint64_t second, uint64_t end, uint64_t *ret_end)
{
	uint64_t size = second & ~(uint64_t)FLAGS;

	if (first != 0 || (second & FLAGS) != IS_MMAPPED || size == 0 || size % PAGE_RUNS_PAGE ||
	    size > end - page)
		return false;
	*ret_end = page + size;
	return true;
}
