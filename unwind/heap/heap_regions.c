/* SPDX-License-Identifier: MIT */
#include "unwind/heap/heap_regions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A heap grows while it is copied: as many addresses are kept for it on both sides of a region. */
enum { GROWTH_BYTES = 256 << 20 };

static void release(struct region *region)
{
	if (region->bytes)
		munmap(region->bytes, (size_t)(region->room_end - region->room_begin));
	free(region->states);
	region->bytes = NULL;
	region->states = NULL;
}

void regions_clear(struct regions *regions)
{
	for (size_t i = 0; i < regions->count; i++)
		release(&regions->regions[i]);
	free(regions->regions);
	*regions = (struct regions){ 0 };
}

/*---- Room ----*/

static bool reserve_room(struct region *region, uint64_t growth)
{
	const uint64_t begin = region->begin > growth ? region->begin - growth : 0,
		       end = region->end < UINT64_MAX - growth ? region->end + growth : region->end;
	const size_t length = (size_t)(end - begin);
	void *bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			   -1, 0);

	if (bytes == MAP_FAILED)
		return false;
	region->states = calloc(length / HEAP_PAGE, 1);
	if (!region->states) {
		munmap(bytes, length);
		return false;
	}
	region->bytes = bytes;
	region->room_begin = begin;
	region->room_end = end;
	return true;
}

bool region_reserve(struct region *region)
{
	return region->bytes || reserve_room(region, GROWTH_BYTES) || reserve_room(region, 0);
}

struct region *regions_find(struct regions *regions, uint64_t address)
{
	size_t low = 0, high = regions->count;

	if (regions->last && address >= regions->last->begin && address < regions->last->end)
		return regions->last;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (regions->regions[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == regions->count || address < regions->regions[low].begin)
		return NULL;
	return regions->last = &regions->regions[low];
}

/*---- Changes ----*/

static bool is_sane(const struct heap_range *range)
{
	return range->end > range->begin && range->begin % HEAP_PAGE == 0 && range->end % HEAP_PAGE == 0;
}

/* Neighbours are one. *ret_count is at most count. NULL when memory is short. */
static struct region *merge_ranges(const struct heap_range *ranges, size_t count, size_t *ret_count)
{
	struct region *regions = calloc(count + 1, sizeof(*regions));
	size_t merged = 0;

	if (!regions)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const struct heap_range *range = &ranges[i];
		struct region *last = merged ? &regions[merged - 1] : NULL;

		if (!is_sane(range) || (last && range->begin < last->end))
			continue;
		if (last && last->end == range->begin && last->shared == range->shared)
			last->end = range->end;
		else
			regions[merged++] = (struct region){ .begin = range->begin,
							     .end = range->end,
							     .shared = range->shared };
	}
	*ret_count = merged;
	return regions;
}

static uint64_t max_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Forget the pages in [begin, end), which lie in the region's room. */
static void forget(struct region *region, uint64_t begin, uint64_t end)
{
	if (begin >= end)
		return;
	memset(region->states + region_page(region, begin), PAGE_UNKNOWN,
	       (size_t)((end - begin) / HEAP_PAGE));
	madvise(region->bytes + (begin - region->room_begin), (size_t)(end - begin), MADV_DONTNEED);
}

/* Copy what the old region has of the new one. False when memory is short. */
static bool take_pages(struct region *region, const struct region *old)
{
	const uint64_t begin = max_of(region->begin, old->begin), end = min_of(region->end, old->end);
	const size_t first = region_page(old, begin), count = (size_t)((end - begin) / HEAP_PAGE);
	size_t to;

	if (!region_reserve(region))
		return false;
	to = region_page(region, begin);
	for (size_t i = 0; i < count; i++)
		if (old->states[first + i] & PAGE_COPIED)
			memcpy(region->bytes + (to + i) * HEAP_PAGE, old->bytes + (first + i) * HEAP_PAGE,
			       HEAP_PAGE);
	memcpy(region->states + to, old->states + first, count);
	return true;
}

/* The old region's room becomes the new one's. The old one can still be read until all are set. */
static bool take_room(struct region *region, struct region *old)
{
	if (region->bytes || !old->bytes || old->is_taken || old->room_begin > region->begin ||
	    region->end > old->room_end)
		return false;
	region->room_begin = old->room_begin;
	region->room_end = old->room_end;
	region->bytes = old->bytes;
	region->states = old->states;
	region->before_begin = old->begin;
	region->before_end = old->end;
	old->is_taken = true;
	return true;
}

/* Take what old regions have of the region; *from moves to where the next region's may begin. */
static bool take_old(struct region *region, struct regions *old, size_t *from)
{
	uint64_t covered = 0;
	bool taken = true;

	while (*from < old->count && old->regions[*from].end <= region->begin)
		++*from;
	for (size_t i = *from; i < old->count && old->regions[i].begin < region->end; i++) {
		struct region *other = &old->regions[i];

		covered += min_of(other->end, region->end) - max_of(other->begin, region->begin);
		region->is_new |= other->is_new;
		if (other->bytes && !take_room(region, other))
			taken &= take_pages(region, other);
	}
	region->is_new |= old->are_set && !region->shared && covered < region->end - region->begin;
	return taken;
}

static void forget_rest(struct region *region)
{
	if (region->before_begin == region->before_end)
		return;
	forget(region, region->before_begin, min_of(region->begin, region->before_end));
	forget(region, max_of(region->end, region->before_begin), region->before_end);
	region->before_begin = region->before_end = 0;
}

/* What could not be read may be mapped now. */
static void forget_unreadable(struct region *region)
{
	const size_t end = region->bytes ? region_page(region, region->end) : 0;

	for (size_t page = end ? region_page(region, region->begin) : 0; page < end; page++)
		if (region->states[page] & PAGE_UNREADABLE)
			region->states[page] = PAGE_UNKNOWN;
}

int regions_set(struct regions *regions, const struct heap_range *ranges, size_t count)
{
	struct regions old = *regions;
	size_t from = 0, merged = 0;
	struct region *fresh = merge_ranges(ranges, count, &merged);
	bool taken = true;

	if (!fresh)
		return -ENOMEM;
	for (size_t i = 0; i < merged; i++)
		taken &= take_old(&fresh[i], &old, &from);
	for (size_t i = 0; i < merged; i++) {
		forget_rest(&fresh[i]);
		forget_unreadable(&fresh[i]);
	}
	for (size_t i = 0; i < old.count; i++)
		if (!old.regions[i].is_taken)
			release(&old.regions[i]);
	free(old.regions);
	*regions = (struct regions){ .regions = fresh, .count = merged, .are_set = true };
	return taken ? 0 : -ENOMEM;
}
