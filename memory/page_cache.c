/* SPDX-License-Identifier: MIT */
#include "memory/page_cache.h"

#include <stdlib.h>
#include <string.h>

#include "memory/word_hash.h"

enum {
	PAGE_SIZE = 4096,
	PAGES_MAX = 16384, /* before one more, all are forgotten */
	RENEWED_MAX = 256, /* 1 MiB: what is read in one moment */
};

struct page {
	uint64_t address;
	UT_hash_handle hh;
	bool is_used; /* since it was copied */
	uint8_t bytes[PAGE_SIZE];
};

struct page_cache {
	struct memory memory; /* must be first */
	struct memory *live;
	struct page *pages;
	struct page *last; /* most reads fall into the page read before */
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

void page_cache_renew(struct page_cache *cache)
{
	struct memory_range ranges[RENEWED_MAX];
	struct page *of_range[RENEWED_MAX], *page, *next;
	size_t count = 0;

	cache->last = NULL;
	HASH_ITER(hh, cache->pages, page, next) {
		if (!page->is_used || count == RENEWED_MAX) {
			drop(cache, page);
			continue;
		}
		page->is_used = false;
		of_range[count] = page;
		ranges[count++] = (struct memory_range){ page->address, page->bytes, PAGE_SIZE, MEMORY_OK };
	}
	memory_read_ranges(cache->live, ranges, count);
	for (size_t i = 0; i < count; i++)
		if (ranges[i].status != MEMORY_OK)
			drop(cache, of_range[i]);
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

static const struct page *find(struct page_cache *cache, uint64_t address, enum memory_status *ret_status)
{
	struct page *page = cache->last;

	*ret_status = MEMORY_OK;
	if (page && page->address == address)
		return page;
	HASH_FIND(hh, cache->pages, &address, sizeof(address), page);
	if (!page)
		page = fetch(cache, address, ret_status);
	if (page) {
		page->is_used = true;
		cache->last = page;
	}
	return page;
}

static enum memory_status read_part_by_part(struct page_cache *cache, uint64_t address, uint8_t *copy,
					    size_t length)
{
	while (length) {
		uint64_t start = address & ~(uint64_t)(PAGE_SIZE - 1);
		size_t skip = (size_t)(address - start), part = PAGE_SIZE - skip;
		enum memory_status status;
		const struct page *page = find(cache, start, &status);

		if (!page)
			return status;
		if (part > length)
			part = length;
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

	for (size_t i = 0; i < count; i++)
		ranges[i].status = read_part_by_part(cache, ranges[i].address, ranges[i].copy,
						     ranges[i].length);
}

struct page_cache *page_cache_new(struct memory *live)
{
	struct page_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->memory.read_ranges = read_ranges;
	cache->live = live;
	return cache;
}

void page_cache_free(struct page_cache *cache)
{
	if (!cache)
		return;
	page_cache_forget(cache);
	free(cache);
}

struct memory *page_cache_memory(struct page_cache *cache)
{
	return &cache->memory;
}
