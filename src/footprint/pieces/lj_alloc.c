/* SPDX-License-Identifier: MIT */
#include "src/footprint/pieces/lj_alloc.h"

#include <stdlib.h>
#include <string.h>

#include "memory/array.h"

enum {
	TRIES = 4, /* the program may change what is being read */
	WORD = 8,
	/* struct malloc_chunk */
	CHUNK_HEAD = 8,
	PINUSE = 1,
	CINUSE = 2,
	INUSE = PINUSE | CINUSE,
	CHUNK_MIN = 32,
	CHUNK_ALIGNMENT = 8,
	/* A segment ends with some words that are no chunk: TOP_FOOT_SIZE, or a record and fenceposts. */
	FOOT_MAX = 128,
	FENCEPOST_HEAD = INUSE | WORD,
	/* struct malloc_state */
	STATE_SMALLBINS = 56,
	BIN_FD = 16, /* of a malloc_chunk that begins two words before the bin */
	BIN_BK = 24,
	BIN_BYTES = 16,
	STATE_SEG = 840,
	STATE_BYTES = 864,
	/* struct malloc_segment */
	SEGMENT_SIZE = 8,
	SEGMENT_NEXT = 16,
	SEGMENT_BYTES = 24,
	/* Large blocks */
	IS_DIRECT = 1,
	DIRECT_FOOT = 32,
	DIRECT_MIN = 128 * 1024,
};

static const uint64_t address_max = UINT64_C(1) << 47;

static uint64_t word_at(const uint8_t *bytes, size_t at)
{
	uint64_t word;

	memcpy(&word, bytes + at, sizeof(word));
	return word;
}

/* A bin that was never used points to itself. Those of sizes below CHUNK_MIN never are. */
static bool bins_are_right(const uint8_t *state, uint64_t address)
{
	for (unsigned i = 0; i < CHUNK_MIN / CHUNK_ALIGNMENT; i++) {
		size_t place = STATE_SMALLBINS + i * BIN_BYTES;

		if (word_at(state, place + BIN_FD) != address + place ||
		    word_at(state, place + BIN_BK) != address + place)
			return false;
	}
	return true;
}

static bool segment_is_sane(uint64_t base, uint64_t size)
{
	return base % PAGE_RUNS_PAGE == 0 && size % PAGE_RUNS_PAGE == 0 && base > 0 && size > 0 &&
	       base < address_max && size < address_max - base;
}

/* Follow the list of segments. The state is in one of them. */
static enum lj_alloc_status list_segments(const struct window *window, const uint8_t *state, uint64_t allocd,
					  struct lj_alloc *alloc)
{
	uint64_t base = word_at(state, STATE_SEG), size = word_at(state, STATE_SEG + SEGMENT_SIZE);
	uint64_t next = word_at(state, STATE_SEG + SEGMENT_NEXT);
	bool holds_state = false;
	size_t room = 0;

	for (;;) {
		uint8_t record[SEGMENT_BYTES];
		struct heap_piece *moved;

		if (!segment_is_sane(base, size) || alloc->count == LJ_ALLOC_SEGMENTS_MAX)
			return LJ_ALLOC_NONE;
		moved = array_grow(alloc->segments, &room, alloc->count + 1, sizeof(*moved));
		if (!moved)
			return LJ_ALLOC_NO_MEMORY;
		alloc->segments = moved;
		moved[alloc->count++] = (struct heap_piece){ .begin = base, .end = base + size };
		holds_state |= allocd >= base && allocd - base < size;
		if (next == 0)
			break;
		if (!window_peek(window, next, record, sizeof(record)))
			return LJ_ALLOC_NONE;
		base = word_at(record, 0);
		size = word_at(record, SEGMENT_SIZE);
		next = word_at(record, SEGMENT_NEXT);
	}
	return holds_state ? LJ_ALLOC_OK : LJ_ALLOC_NONE;
}

/* Follow the chunks of a segment. False if they do not lead to its end. */
static bool follow_chunks(struct window *window, struct heap_piece *segment)
{
	uint64_t at = segment->begin, head, last = CINUSE;

	segment->free = 0;
	segment->free_here = (struct page_sum){ 0, 0 };
	while (segment->end - at > FOOT_MAX) {
		uint64_t size;

		if (!window_word(window, at + CHUNK_HEAD, &head))
			return false;
		size = head & ~(uint64_t)INUSE;
		if (size < CHUNK_MIN || size % CHUNK_ALIGNMENT || size > segment->end - at ||
		    !(head & PINUSE) != !(last & CINUSE))
			return false;
		if (!(head & CINUSE))
			heap_piece_add_free(segment, window->runs, at, at + size);
		last = head;
		at += size;
	}
	return true;
}

static void read_free_chunks(struct window *window, struct heap_piece *segment)
{
	for (unsigned i = 0; i < TRIES && !segment->is_told; i++) {
		window_forget(window);
		segment->is_told = follow_chunks(window, segment);
	}
	if (segment->is_told)
		return;
	segment->free = 0;
	segment->free_here = (struct page_sum){ 0, 0 };
}

static int compare_pieces(const void *a, const void *b)
{
	const struct heap_piece *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

static bool overlap(const struct lj_alloc *alloc)
{
	for (size_t i = 1; i < alloc->count; i++)
		if (alloc->segments[i].begin < alloc->segments[i - 1].end)
			return true;
	return false;
}

static enum lj_alloc_status read_once(const struct window *window, uint64_t allocd, struct lj_alloc *alloc)
{
	uint8_t state[STATE_BYTES];
	enum lj_alloc_status status;

	if (allocd % WORD || !window_peek(window, allocd, state, sizeof(state)))
		return LJ_ALLOC_NONE;
	if (!bins_are_right(state, allocd))
		return LJ_ALLOC_NONE;
	status = list_segments(window, state, allocd, alloc);
	if (status != LJ_ALLOC_OK)
		return status == LJ_ALLOC_NONE ? LJ_ALLOC_UNSTEADY : status;
	qsort(alloc->segments, alloc->count, sizeof(*alloc->segments), compare_pieces);
	return overlap(alloc) ? LJ_ALLOC_UNSTEADY : LJ_ALLOC_OK;
}

enum lj_alloc_status lj_alloc_read(struct window *window, uint64_t allocd, struct lj_alloc *ret_alloc)
{
	struct lj_alloc alloc = { .count = 0 };
	enum lj_alloc_status status = LJ_ALLOC_NONE, worst = LJ_ALLOC_NONE;

	/* Bins change together with other fields: what is no allocator now may be one the next time. */
	for (unsigned i = 0; i < TRIES && status != LJ_ALLOC_OK; i++) {
		lj_alloc_clear(&alloc);
		status = read_once(window, allocd, &alloc);
		if (status == LJ_ALLOC_UNSTEADY || status == LJ_ALLOC_NO_MEMORY)
			worst = status;
	}
	if (status != LJ_ALLOC_OK) {
		lj_alloc_clear(&alloc);
		return worst;
	}
	for (size_t i = 0; i < alloc.count; i++)
		read_free_chunks(window, &alloc.segments[i]);
	*ret_alloc = alloc;
	return LJ_ALLOC_OK;
}

void lj_alloc_clear(struct lj_alloc *alloc)
{
	free(alloc->segments);
	*alloc = (struct lj_alloc){ .count = 0 };
}

/* direct_alloc(): offset | IS_DIRECT, size | CINUSE, the block, a fencepost, 0. */
bool lj_alloc_large(const struct window *window, uint64_t page, uint64_t first, uint64_t second, uint64_t end,
		    uint64_t *ret_end)
{
	uint64_t size = second & ~(uint64_t)INUSE, foot[2];

	if (first != IS_DIRECT || (second & INUSE) != CINUSE || (size + DIRECT_FOOT) % PAGE_RUNS_PAGE ||
	    size < DIRECT_MIN / 2 || end - page < DIRECT_FOOT || size > end - page - DIRECT_FOOT)
		return false;
	if (!window_peek(window, page + size + CHUNK_HEAD, foot, sizeof(foot)) || foot[0] != FENCEPOST_HEAD ||
	    foot[1] != 0)
		return false;
	*ret_end = page + size + DIRECT_FOOT;
	return true;
}
