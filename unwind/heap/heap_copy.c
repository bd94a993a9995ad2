/* SPDX-License-Identifier: MIT */
#include "unwind/heap/heap_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory/array.h"

enum {
	PAGES_AT_ONCE = 64,  /* copied when the first of them is asked for */
	RUN_PAGES = 512,     /* the longest run in one range of a read */
	RANGES_AT_ONCE = 64, /* in one read */
};

enum page_state { PAGE_UNKNOWN, PAGE_COPIED, PAGE_UNREADABLE };

struct region {
	uint64_t begin, end;
	uint8_t *bytes;  /* reserved when first needed; NULL until then */
	uint8_t *states; /* enum page_state of each page */
};

struct heap_copy {
	struct memory memory; /* first: the copy as memory */
	struct memory *source;
	struct region *regions; /* sorted by address */
	size_t count, size;
	struct region *last; /* found last */
	uint64_t bytes, kept, missed;
	bool sealed;
};

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct heap_copy *copy = (struct heap_copy *)(void *)memory;

	for (size_t i = 0; i < count; i++) {
		const uint8_t *bytes = heap_copy_view(copy, ranges[i].address, ranges[i].length);

		ranges[i].status = bytes || ranges[i].length == 0 ? MEMORY_OK : MEMORY_NOT_CAPTURED;
		if (bytes)
			memcpy(ranges[i].copy, bytes, ranges[i].length);
	}
}

struct heap_copy *heap_copy_new(struct memory *source)
{
	struct heap_copy *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->memory.read_ranges = read_ranges;
	copy->source = source;
	return copy;
}

static size_t page_count(const struct region *region)
{
	return (size_t)((region->end - region->begin) / HEAP_PAGE);
}

void heap_copy_free(struct heap_copy *copy)
{
	if (!copy)
		return;
	for (size_t i = 0; i < copy->count; i++) {
		struct region *region = &copy->regions[i];

		if (region->bytes)
			munmap(region->bytes, (size_t)(region->end - region->begin));
		free(region->states);
	}
	free(copy->regions);
	free(copy);
}

struct memory *heap_copy_memory(struct heap_copy *copy)
{
	return &copy->memory;
}

int heap_copy_add_region(struct heap_copy *copy, uint64_t begin, uint64_t end)
{
	struct region *regions;
	size_t at = copy->count;

	if (end <= begin || begin % HEAP_PAGE || end % HEAP_PAGE)
		return 0;
	copy->last = NULL;
	while (at > 0 && copy->regions[at - 1].begin > begin)
		at--;
	if (at > 0 && copy->regions[at - 1].end == begin && !copy->regions[at - 1].bytes) {
		copy->regions[at - 1].end = end;
		return 0;
	}
	if ((at > 0 && copy->regions[at - 1].end > begin) ||
	    (at < copy->count && copy->regions[at].begin < end))
		return 0;
	regions = array_grow(copy->regions, &copy->size, copy->count + 1, sizeof(*regions));
	if (!regions)
		return -ENOMEM;
	copy->regions = regions;
	memmove(&regions[at + 1], &regions[at], (copy->count - at) * sizeof(*regions));
	regions[at] = (struct region){ .begin = begin, .end = end };
	copy->count++;
	return 0;
}

static bool reserve(struct region *region)
{
	void *bytes;

	if (region->bytes)
		return true;
	region->states = calloc(page_count(region), 1);
	if (!region->states)
		return false;
	bytes = mmap(NULL, (size_t)(region->end - region->begin), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED) {
		free(region->states);
		region->states = NULL;
		return false;
	}
	region->bytes = bytes;
	return true;
}

static struct region *find_region(struct heap_copy *copy, uint64_t address)
{
	size_t low = 0, high = copy->count;

	if (copy->last && address >= copy->last->begin && address < copy->last->end)
		return copy->last;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (copy->regions[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == copy->count || address < copy->regions[low].begin)
		return NULL;
	return copy->last = &copy->regions[low];
}

/*---- Copying ----*/

static void set_state(struct heap_copy *copy, struct region *region, size_t page, enum page_state state)
{
	if (region->states[page] == PAGE_COPIED)
		copy->kept -= HEAP_PAGE;
	if (state == PAGE_COPIED)
		copy->kept += HEAP_PAGE;
	region->states[page] = (uint8_t)state;
}

/* A run of pages of one region. */
struct run {
	struct region *region;
	size_t first, count;
};

static struct memory_range range_of(const struct run *run)
{
	return (struct memory_range){ .address = run->region->begin + run->first * HEAP_PAGE,
				      .copy = run->region->bytes + run->first * HEAP_PAGE,
				      .length = run->count * HEAP_PAGE };
}

static void read_page_by_page(struct heap_copy *copy, const struct run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		struct run one = { run->region, run->first + i, 1 };
		struct memory_range range = range_of(&one);

		memory_read_ranges(copy->source, &range, 1);
		set_state(copy, run->region, one.first,
			  range.status == MEMORY_OK ? PAGE_COPIED : PAGE_UNREADABLE);
	}
}

static void read_runs(struct heap_copy *copy, const struct run *runs, size_t count)
{
	struct memory_range ranges[RANGES_AT_ONCE];

	for (size_t i = 0; i < count; i++)
		ranges[i] = range_of(&runs[i]);
	memory_read_ranges(copy->source, ranges, count);
	for (size_t i = 0; i < count; i++) {
		copy->bytes += ranges[i].length;
		if (ranges[i].status != MEMORY_OK)
			read_page_by_page(copy, &runs[i]);
		else
			for (size_t page = 0; page < runs[i].count; page++)
				set_state(copy, runs[i].region, runs[i].first + page, PAGE_COPIED);
	}
}

/* Copy the pages in [first, end) that were never read. */
static void read_missing(struct heap_copy *copy, struct region *region, size_t first, size_t end)
{
	while (first < end) {
		struct run run = { region, first, 0 };

		while (first < end && run.count < RUN_PAGES && region->states[first] == PAGE_UNKNOWN) {
			first++;
			run.count++;
		}
		if (run.count)
			read_runs(copy, &run, 1);
		while (first < end && region->states[first] != PAGE_UNKNOWN)
			first++;
	}
}

/* The next run of copied pages from *page on, which moves behind it. Its count is 0 at the end. */
static struct run next_run(struct region *region, size_t *page)
{
	const size_t pages = region->bytes ? page_count(region) : 0;
	struct run run = { .region = region };

	while (*page < pages && region->states[*page] != PAGE_COPIED)
		++*page;
	run.first = *page;
	while (*page < pages && run.count < RUN_PAGES && region->states[*page] == PAGE_COPIED) {
		++*page;
		run.count++;
	}
	return run;
}

uint64_t heap_copy_again(struct heap_copy *copy, uint64_t from, uint64_t bytes)
{
	struct run runs[RANGES_AT_ONCE];
	size_t count = 0;
	uint64_t done = 0;

	for (size_t i = 0; i < copy->count; i++) {
		struct region *region = &copy->regions[i];
		size_t page = from > region->begin ? (size_t)((from - region->begin) / HEAP_PAGE) : 0;

		for (;;) {
			struct run run = next_run(region, &page);

			if (run.count == 0)
				break;
			runs[count++] = run;
			done += run.count * HEAP_PAGE;
			if (count < RANGES_AT_ONCE && done < bytes)
				continue;
			read_runs(copy, runs, count);
			count = 0;
			if (done >= bytes)
				return region->begin + page * HEAP_PAGE;
		}
	}
	read_runs(copy, runs, count);
	return UINT64_MAX;
}

void heap_copy_fill(struct heap_copy *copy,
		    bool (*next)(void *context, uint64_t *at, uint64_t end, uint64_t *ret_begin,
				 uint64_t *ret_end),
		    void *context)
{
	for (size_t i = 0; i < copy->count; i++) {
		struct region *region = &copy->regions[i];
		const size_t pages = region->bytes ? page_count(region) : 0;

		for (size_t page = 0; page < pages;) {
			size_t end = page;
			uint64_t at, begin, stop;

			while (end < pages && region->states[end] == PAGE_UNKNOWN)
				end++;
			at = region->begin + page * HEAP_PAGE;
			while (end > page &&
			       next(context, &at, region->begin + end * HEAP_PAGE, &begin, &stop))
				read_missing(copy, region, (size_t)((begin - region->begin) / HEAP_PAGE),
					     (size_t)((stop - region->begin) / HEAP_PAGE));
			for (page = end; page < pages && region->states[page] != PAGE_UNKNOWN;)
				page++;
		}
	}
}

uint64_t heap_copy_count_changed(struct heap_copy *copy)
{
	uint8_t *bytes = malloc(RUN_PAGES * HEAP_PAGE);
	uint64_t changed = 0;

	for (size_t i = 0; bytes && i < copy->count; i++) {
		size_t page = 0;

		for (;;) {
			struct run run = next_run(&copy->regions[i], &page);
			struct memory_range range = range_of(&run);

			if (run.count == 0)
				break;
			range.copy = bytes;
			memory_read_ranges(copy->source, &range, 1);
			for (size_t j = 0; j < run.count; j++)
				changed += range.status != MEMORY_OK ||
					   memcmp(bytes + j * HEAP_PAGE,
						  run.region->bytes + (run.first + j) * HEAP_PAGE,
						  HEAP_PAGE) != 0;
		}
	}
	free(bytes);
	return changed;
}

/*---- Reading ----*/

/* Copy [first, end), and some pages more: objects that are made one after the other lie side by side. */
static void read_ahead(struct heap_copy *copy, struct region *region, size_t first, size_t end)
{
	size_t pages = page_count(region), wanted = first + PAGES_AT_ONCE;

	if (wanted > pages)
		wanted = pages;
	read_missing(copy, region, first, wanted > end ? wanted : end);
}

static bool is_copied(const struct region *region, size_t first, size_t end)
{
	for (size_t page = first; page < end; page++)
		if (region->states[page] != PAGE_COPIED)
			return false;
	return true;
}

const uint8_t *heap_copy_view(struct heap_copy *copy, uint64_t address, size_t length)
{
	struct region *region = find_region(copy, address);
	size_t first, end;

	if (!region || length > region->end - address || !reserve(region))
		return NULL;
	first = (size_t)((address - region->begin) / HEAP_PAGE);
	end = (size_t)((address - region->begin + length + HEAP_PAGE - 1) / HEAP_PAGE);
	if (!is_copied(region, first, end)) {
		if (copy->sealed) {
			copy->missed++;
			return NULL;
		}
		read_ahead(copy, region, first, end);
		if (!is_copied(region, first, end))
			return NULL;
	}
	return region->bytes + (address - region->begin);
}

void heap_copy_seal(struct heap_copy *copy)
{
	copy->sealed = true;
	copy->missed = 0;
}

void heap_copy_unseal(struct heap_copy *copy)
{
	copy->sealed = false;
}

uint64_t heap_copy_bytes(const struct heap_copy *copy)
{
	return copy->bytes;
}

uint64_t heap_copy_kept(const struct heap_copy *copy)
{
	return copy->kept;
}

uint64_t heap_copy_missed(const struct heap_copy *copy)
{
	return copy->missed;
}
