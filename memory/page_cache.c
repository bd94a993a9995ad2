/* SPDX-License-Identifier: MIT */
#include "memory/page_cache.h"

#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/word_hash.h"

enum {
	PAGE_SIZE = 4096,
	PAGES_MAX = 16384, /* before one more, all are forgotten */
	/*
	 * A part of a page is what is renewed. A request of nginx has some hundred bytes on each of its
	 * pages.
	 */
	PART_SIZE = 512,
	PARTS = PAGE_SIZE / PART_SIZE,
	LONG_READ = 256 << 10, /* bytes: such a read is not kept */
	RENEWED_MAX = 8 << 20, /* bytes: some thousand requests, which take some milliseconds */
	ALL_PARTS = (1 << PARTS) - 1,
};

struct page {
	uint64_t address;
	UT_hash_handle hh;
	unsigned int held; /* the parts that are copied, a bit for each */
	unsigned int used; /* those read from since they were copied */
	uint8_t bytes[PAGE_SIZE];
};

struct page_cache {
	struct memory memory; /* must be first */
	struct memory *live;
	struct page *pages;
	struct page *last; /* most reads fall into the page read before */
	/* For page_cache_renew(). Owned. */
	struct memory_range *ranges;
	size_t range_room;
};

static void drop(struct page_cache *cache, struct page *page)
{
	HASH_DEL(cache->pages, page);
	free(page);
}

void page_cache_forget(struct page_cache *cache)
{
	struct page *page, *next;

	HASH_ITER(hh, cache->pages, page, next) {
		drop(cache, page);
	}
	cache->last = NULL;
}

/* The parts that some bytes of a page are in, at least one. */
static unsigned int parts_of(size_t offset, size_t length)
{
	const size_t first = offset / PART_SIZE, last = (offset + length - 1) / PART_SIZE;

	return (ALL_PARTS >> (PARTS - 1 - last)) & (ALL_PARTS << first);
}

/* Add the parts of a page that were used, side by side in one range. False when memory is short. */
static bool add_used(struct page_cache *cache, struct page *page, size_t *count)
{
	for (size_t part = 0; part < PARTS; part++) {
		size_t first = part;
		struct memory_range *ranges;

		while (part < PARTS && (page->used >> part) & 1)
			part++;
		if (part == first)
			continue;
		ranges = array_grow(cache->ranges, &cache->range_room, *count + 1, sizeof(*ranges));
		if (!ranges)
			return false;
		cache->ranges = ranges;
		ranges[(*count)++] = (struct memory_range){ page->address + first * PART_SIZE,
							    page->bytes + first * PART_SIZE,
							    (part - first) * PART_SIZE, MEMORY_OK };
	}
	return true;
}

/* Keep what was read again. The ranges are in the order of the pages. */
static void keep_read(struct page_cache *cache, size_t count)
{
	struct page *page, *next;
	size_t at = 0;

	HASH_ITER(hh, cache->pages, page, next) {
		bool is_read = page->used != 0;

		for (; at < count && cache->ranges[at].address - page->address < PAGE_SIZE; at++)
			is_read = is_read && cache->ranges[at].status == MEMORY_OK;
		page->held = page->used;
		page->used = 0;
		if (!is_read)
			drop(cache, page);
	}
}

void page_cache_renew(struct page_cache *cache)
{
	struct page *page, *next;
	size_t count = 0, bytes = 0;

	cache->last = NULL;
	HASH_ITER(hh, cache->pages, page, next) {
		bytes += (size_t)__builtin_popcount(page->used) * PART_SIZE;
		if (bytes > RENEWED_MAX)
			page->used = 0;
		if (!add_used(cache, page, &count)) {
			page_cache_forget(cache);
			return;
		}
	}
	if (count)
		memory_read_ranges(cache->live, cache->ranges, count);
	keep_read(cache, count);
}

/* Read a page and keep it. NULL and a status when it cannot be read, or memory is short. */
static struct page *fetch(struct page_cache *cache, uint64_t address, enum memory_status *ret_status)
{
	struct page *page;

	if (HASH_COUNT(cache->pages) >= PAGES_MAX)
		page_cache_forget(cache);
	page = malloc(sizeof(*page));
	*ret_status = MEMORY_NOT_CAPTURED;
	if (!page)
		return NULL;
	page->address = address;
	page->held = ALL_PARTS;
	page->used = 0;
	*ret_status = memory_read(cache->live, address, page->bytes, PAGE_SIZE);
	if (*ret_status == MEMORY_OK) {
		HASH_ADD(hh, cache->pages, address, sizeof(page->address), page);
		if (hash_added(&page->hh))
			return page;
		*ret_status = MEMORY_NOT_CAPTURED;
	}
	free(page);
	return NULL;
}

/* Of a page of which some parts were renewed, read all. NULL and a status when it cannot be read. */
static struct page *fetch_rest(struct page_cache *cache, struct page *page, enum memory_status *ret_status)
{
	*ret_status = memory_read(cache->live, page->address, page->bytes, PAGE_SIZE);
	if (*ret_status != MEMORY_OK) {
		cache->last = NULL;
		drop(cache, page);
		return NULL;
	}
	page->held = ALL_PARTS;
	return page;
}

static struct page *find_page(struct page_cache *cache, uint64_t address)
{
	struct page *page = cache->last;

	if (!page || page->address != address)
		HASH_FIND(hh, cache->pages, &address, sizeof(address), page);
	return page;
}

static const struct page *use(struct page_cache *cache, struct page *page, unsigned int parts)
{
	page->used |= parts;
	cache->last = page;
	return page;
}

/* The page with these parts of it. */
static const struct page *find(struct page_cache *cache, uint64_t address, unsigned int parts,
			       enum memory_status *ret_status)
{
	struct page *page = find_page(cache, address);

	*ret_status = MEMORY_OK;
	if (!page)
		page = fetch(cache, address, ret_status);
	else if (parts & ~page->held)
		page = fetch_rest(cache, page, ret_status);
	return page ? use(cache, page, parts) : NULL;
}

static const void *view(struct memory *memory, uint64_t address, size_t length)
{
	struct page_cache *cache = (struct page_cache *)memory;
	const size_t skip = address % PAGE_SIZE;
	struct page *page;
	unsigned int parts;

	if (length == 0 || length > PAGE_SIZE - skip)
		return NULL;
	page = find_page(cache, address - skip);
	parts = parts_of(skip, length);
	return page && !(parts & ~page->held) ? use(cache, page, parts)->bytes + skip : NULL;
}

static enum memory_status read_part_by_part(struct page_cache *cache, uint64_t address, uint8_t *copy,
					    size_t length)
{
	while (length) {
		uint64_t start = address & ~(uint64_t)(PAGE_SIZE - 1);
		size_t skip = (size_t)(address - start), part = PAGE_SIZE - skip;
		enum memory_status status;
		const struct page *page;

		if (part > length)
			part = length;
		page = find(cache, start, parts_of(skip, part), &status);
		if (!page)
			return status;
		memcpy(copy, page->bytes + skip, part);
		copy += part;
		address += part;
		length -= part;
	}
	return MEMORY_OK;
}

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct page_cache *cache = (struct page_cache *)memory;

	for (size_t i = 0; i < count; i++) {
		struct memory_range *range = &ranges[i];

		range->status = range->length >= LONG_READ
					? memory_read(cache->live, range->address, range->copy, range->length)
					: read_part_by_part(cache, range->address, range->copy,
							    range->length);
	}
}

struct page_cache *page_cache_new(struct memory *live)
{
	struct page_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->memory.read_ranges = read_ranges;
	cache->memory.view = view;
	cache->live = live;
	return cache;
}

void page_cache_free(struct page_cache *cache)
{
	if (!cache)
		return;
	page_cache_forget(cache);
	free(cache->ranges);
	free(cache);
}

struct memory *page_cache_memory(struct page_cache *cache)
{
	return &cache->memory;
}
