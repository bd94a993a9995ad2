/* SPDX-License-Identifier: MIT */
/*
 * kept_pages: a kept process as whole pages, as snapshots and copies of a heap read them.
 *
 * Blocks of it are kept: the other bytes of their pages are zeros. A test may write into them.
 */
#ifndef LJSPY_KEPT_PAGES_H
#define LJSPY_KEPT_PAGES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/kept_process.h"

enum { KEPT_PAGE = 4096, KEPT_PAGES_MAX = 1024 };

struct kept_page {
	uint64_t address;
	uint8_t bytes[KEPT_PAGE];
};

struct kept_pages {
	struct memory memory; /* first: what is read */
	struct layout layout;
	uint64_t g;
	struct kept_page *pages;
	size_t count;
};

static inline struct kept_page *kept_pages_find(const struct kept_pages *kept, uint64_t address)
{
	for (size_t i = 0; i < kept->count; i++)
		if (kept->pages[i].address == (address & ~(uint64_t)(KEPT_PAGE - 1)))
			return &kept->pages[i];
	return NULL;
}

static void kept_pages_read(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct kept_pages *kept = (const struct kept_pages *)memory;

	for (size_t i = 0; i < count; i++) {
		uint64_t at = ranges[i].address, last = at + ranges[i].length;

		ranges[i].status = MEMORY_OK;
		for (size_t length; at < last; at += length) {
			const struct kept_page *page = kept_pages_find(kept, at);

			length = KEPT_PAGE - at % KEPT_PAGE;
			length = length < last - at ? length : last - at;
			if (page)
				memcpy((uint8_t *)ranges[i].copy + (at - ranges[i].address),
				       page->bytes + at % KEPT_PAGE, length);
			else
				ranges[i].status = MEMORY_UNMAPPED;
		}
	}
}

/* Write into a page; it may be one of which nothing was kept. */
static inline void kept_pages_put_bytes(struct kept_pages *kept, uint64_t address, const void *bytes,
					size_t size)
{
	for (size_t i = 0; i < size; i++) {
		struct kept_page *page = kept_pages_find(kept, address + i);

		if (!page) {
			assert_in_range(kept->count, 0, KEPT_PAGES_MAX - 1);
			page = &kept->pages[kept->count++];
			*page = (struct kept_page){ .address = (address + i) & ~(uint64_t)(KEPT_PAGE - 1) };
		}
		page->bytes[(address + i) % KEPT_PAGE] = ((const uint8_t *)bytes)[i];
	}
}

static inline void kept_pages_put(struct kept_pages *kept, uint64_t address, uint64_t value, size_t size)
{
	kept_pages_put_bytes(kept, address, &value, size);
}

/* The page at an address is not mapped any more. */
static inline void kept_pages_forget(struct kept_pages *kept, uint64_t address)
{
	struct kept_page *page = kept_pages_find(kept, address);

	if (page)
		*page = kept->pages[--kept->count];
	else
		fail();
}

static inline void kept_pages_load(struct kept_pages *kept, const char *name)
{
	struct kept_process *process = kept_process_load(name);

	*kept = (struct kept_pages){ .memory = { .read_ranges = kept_pages_read },
				     .layout = process->layout,
				     .g = process->g };
	kept->pages = calloc(KEPT_PAGES_MAX, sizeof(*kept->pages));
	assert_non_null(kept->pages);
	for (size_t i = 0; i < process->count; i++)
		kept_pages_put_bytes(kept, process->blocks[i].address, process->blocks[i].bytes, KEPT_BLOCK);
	kept_process_free(process);
}

static inline void kept_pages_free(struct kept_pages *kept)
{
	free(kept->pages);
}

#endif
