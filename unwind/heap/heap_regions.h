/* SPDX-License-Identifier: MIT */
/*
 * heap_regions: the ranges of addresses that a heap_copy has, and room for their bytes. Private to
 * unwind/heap.
 */
#ifndef LJSPY_HEAP_REGIONS_H
#define LJSPY_HEAP_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/heap/heap_copy.h"

/* Of a page; PAGE_UNKNOWN is no bit. */
enum page_state {
	PAGE_UNKNOWN = 0,
	PAGE_COPIED = 1 << 0,
	PAGE_UNREADABLE = 1 << 1,
	PAGE_MARKED = 1 << 2,  /* to be copied in the next hold */
	PAGE_HELD = 1 << 3,    /* copied in the last hold */
	PAGE_CHANGED = 1 << 4, /* since it was copied */
	PAGE_MISSED = 1 << 5,  /* asked for while the copy was sealed; copying it takes that away */
};

/* Its pages count from the beginning of its room, which may be larger than it is. */
struct region {
	uint64_t begin, end;
	bool shared;
	bool is_new;                   /* since the regions were set first */
	uint64_t room_begin, room_end; /* for which bytes are reserved */
	uint8_t *bytes;                /* reserved when first needed; NULL until then */
	uint8_t *states; /* enum page_state of each page of the room; unknown outside of the region */
	uint64_t before_begin, before_end; /* while regions are set: where it was */
	bool is_taken;                     /* ditto: another region has its room */
};

struct regions {
	struct region *regions; /* sorted by address */
	size_t count;
	struct region *last; /* found last */
	bool are_set;
};

void regions_clear(struct regions *regions);

/* As heap_copy_set_regions(). */
int regions_set(struct regions *regions, const struct heap_range *ranges, size_t count);

/* The region with the address, or NULL. */
struct region *regions_find(struct regions *regions, uint64_t address);

/* False when memory is short. */
bool region_reserve(struct region *region);

static inline size_t region_page(const struct region *region, uint64_t address)
{
	return (size_t)((address - region->room_begin) / HEAP_PAGE);
}

static inline uint64_t region_address(const struct region *region, size_t page)
{
	return region->room_begin + page * HEAP_PAGE;
}

#endif
