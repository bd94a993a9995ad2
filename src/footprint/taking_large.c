/* SPDX-License-Identifier: MIT */
/* Large blocks, which have mappings of their own, in memory that no piece has claimed. */
#include "src/footprint/taking.h"

#include "src/footprint/pieces/glibc_heap.h"
#include "src/footprint/pieces/lj_alloc.h"

enum { PAGES_AT_ONCE = 64 };

/* The first two words of a page. */
struct page_head {
	uint64_t page;
	uint64_t words[2];
	bool is_read;
};

/* Memory that no piece has claimed. */
struct gap {
	uint64_t begin, end;
	uint64_t after; /* where the block found last ends; begin if none was */
};

/* Read the heads of the next pages in memory from *at on; *at moves behind them. How many. */
static size_t read_heads(const struct taking *taking, uint64_t *at, uint64_t end,
			 struct page_head heads[static PAGES_AT_ONCE])
{
	struct memory_range ranges[PAGES_AT_ONCE];
	const struct page_run *run;
	size_t count = 0;

	while (count < PAGES_AT_ONCE && *at < end && (run = page_runs_from(&taking->runs, *at)) &&
	       run->begin < end) {
		*at = run->begin > *at ? run->begin : *at;
		for (; count < PAGES_AT_ONCE && *at < run->end && *at < end; *at += PAGE_RUNS_PAGE) {
			heads[count].page = *at;
			ranges[count] = (struct memory_range){ .address = *at,
							       .copy = heads[count].words,
							       .length = sizeof(heads[count].words) };
			count++;
		}
	}
	memory_read_ranges(taking->window.memory, ranges, count);
	for (size_t i = 0; i < count; i++)
		heads[i].is_read = ranges[i].status == MEMORY_OK;
	return count;
}

/* A block of LuaJIT's belongs to a VM only where there is one. */
static int claim_lua(struct taking *taking, const struct heap_piece *piece)
{
	struct footprint_vm *vm = NULL;

	for (size_t i = 0; i < taking->report->vm_count && taking->lua_allocators == 1; i++)
		if (taking->report->vms[i].allocator == FOOTPRINT_LJ_ALLOC)
			vm = &taking->report->vms[i];
	for (size_t i = 0; i < taking->report->vm_count && !vm; i++)
		taking->report->vms[i].shares_large = true;
	if (!vm)
		return taking_claim(taking, piece, FOOTPRINT_LUA_LARGE, FOOTPRINT_LUA_LARGE, NULL, 0);
	vm->large_count++;
	vm->large_bytes += piece->end - piece->begin;
	return taking_claim(taking, piece, FOOTPRINT_LUA_HEAP, FOOTPRINT_LUA_HEAP, NULL, vm->g);
}

/* Does a block of malloc()'s that ends here have a neighbour that confirms it? */
static bool is_confirmed(const struct taking *taking, const struct gap *gap, uint64_t begin, uint64_t end)
{
	uint64_t words[2], next;

	if (begin == gap->after || end == gap->end)
		return true;
	return window_peek(&taking->window, end, words, sizeof(words)) &&
	       (glibc_heap_large(end, words[0], words[1], gap->end, &next) ||
		lj_alloc_large(&taking->window, end, words[0], words[1], gap->end, &next));
}

static int claim_block(struct taking *taking, struct gap *gap, const struct page_head *head)
{
	struct heap_piece piece = { .begin = head->page };
	int error = 0;

	if (lj_alloc_large(&taking->window, head->page, head->words[0], head->words[1], gap->end, &piece.end))
		error = claim_lua(taking, &piece);
	else if (glibc_heap_large(head->page, head->words[0], head->words[1], gap->end, &piece.end) &&
		 is_confirmed(taking, gap, piece.begin, piece.end))
		error = taking_claim(taking, &piece, FOOTPRINT_MALLOC_LARGE, FOOTPRINT_MALLOC_LARGE, NULL, 0);
	else
		return 0;
	gap->after = piece.end;
	return error;
}

static int search_gap(struct taking *taking, uint64_t begin, uint64_t end)
{
	struct gap gap = { begin, end, begin };
	struct page_head heads[PAGES_AT_ONCE];
	size_t count;
	int error = 0;

	for (uint64_t at = begin; !error && (count = read_heads(taking, &at, end, heads)) > 0;) {
		for (size_t i = 0; i < count && !error; i++)
			if (heads[i].is_read && heads[i].page >= gap.after)
				error = claim_block(taking, &gap, &heads[i]);
		at = gap.after > at ? gap.after : at;
	}
	return error;
}

static int search_mapping(struct taking *taking, const struct mapping *mapping)
{
	uint64_t at = mapping->begin;
	int error = 0;

	while (at < mapping->end && !error) {
		size_t next = claims_from(&taking->claims, at);
		bool is_last = next == taking->claims.count ||
			       taking->claims.list[next].begin >= mapping->end;
		uint64_t end = is_last ? mapping->end : taking->claims.list[next].begin;
		uint64_t after = is_last ? mapping->end : taking->claims.list[next].end;

		if (end > at)
			error = search_gap(taking, at, end);
		at = after;
	}
	return error;
}

int taking_large(struct taking *taking)
{
	int error = 0;

	for (size_t i = 0; i < maps_count(taking->smaps.maps) && !error; i++)
		if (taking->smaps.figures[i].rss && taking_is_plain(maps_at(taking->smaps.maps, i)))
			error = search_mapping(taking, maps_at(taking->smaps.maps, i));
	return error;
}
