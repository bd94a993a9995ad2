/* SPDX-License-Identifier: MIT */
#include "unwind/heap/heap_copy.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/heap/heap_regions.h"

enum {
	PAGES_AT_ONCE = 64,   /* copied when the first of them is asked for */
	NEAR_PAGES = 128,     /* pieces of a region of which all is near what is copied of them */
	RUN_PAGES = 512,      /* the longest run in one range of a read */
	RANGES_AT_ONCE = 256, /* in one read */
	BYTES_AT_ONCE = 16 << 20,
};

struct heap_copy {
	struct memory memory; /* first: the copy as memory */
	struct memory *source;
	struct regions regions;
	uint64_t bytes, kept, marked, missed;
	uint64_t changed; /* pages */
	uint8_t *fresh;   /* room for a run that is compared */
	bool sealed, holding, was_stopped, is_short;
	bool (*may_go_on)(void *context); /* while holding */
	void *may_go_on_context;
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
	copy->fresh = malloc(RUN_PAGES * HEAP_PAGE);
	if (!copy->fresh) {
		free(copy);
		return NULL;
	}
	copy->memory.read_ranges = read_ranges;
	copy->source = source;
	return copy;
}

void heap_copy_free(struct heap_copy *copy)
{
	if (!copy)
		return;
	regions_clear(&copy->regions);
	free(copy->fresh);
	free(copy);
}

struct memory *heap_copy_memory(struct heap_copy *copy)
{
	return &copy->memory;
}

/*---- Pages ----*/

/* A run of pages of one region. */
struct run {
	struct region *region;
	size_t first, count;
};

/* The pages of a region that may have a state: none before it has room. */
static struct run all_pages(struct region *region)
{
	struct run run = { .region = region };

	if (region->bytes) {
		run.first = region_page(region, region->begin);
		run.count = region_page(region, region->end) - run.first;
	}
	return run;
}

static void set_state(struct heap_copy *copy, struct region *region, size_t page, unsigned int state)
{
	const unsigned int before = region->states[page];

	copy->kept += ((state & PAGE_COPIED) ? HEAP_PAGE : 0) - ((before & PAGE_COPIED) ? HEAP_PAGE : 0);
	copy->marked += ((state & PAGE_MARKED) ? HEAP_PAGE : 0) - ((before & PAGE_MARKED) ? HEAP_PAGE : 0);
	copy->changed += ((state & PAGE_CHANGED) ? 1 : 0) - ((before & PAGE_CHANGED) ? 1 : 0);
	region->states[page] = (uint8_t)state;
}

/* After regions were set: some pages are gone. */
static void count_states(struct heap_copy *copy)
{
	copy->kept = copy->marked = copy->changed = 0;
	for (size_t i = 0; i < copy->regions.count; i++) {
		const struct run all = all_pages(&copy->regions.regions[i]);

		for (size_t page = all.first; page < all.first + all.count; page++) {
			const unsigned int state = all.region->states[page];

			copy->kept += (state & PAGE_COPIED) ? HEAP_PAGE : 0;
			copy->marked += (state & PAGE_MARKED) ? HEAP_PAGE : 0;
			copy->changed += (state & PAGE_CHANGED) ? 1 : 0;
		}
	}
}

int heap_copy_set_regions(struct heap_copy *copy, const struct heap_range *ranges, size_t count)
{
	int error = regions_set(&copy->regions, ranges, count);

	count_states(copy);
	return error;
}

/* The next run of pages from *page on that have all of mask's states as wanted; *page moves behind it. */
static struct run next_run(const struct run *all, size_t *page, unsigned int mask, unsigned int wanted)
{
	const uint8_t *states = all->region->states;
	const size_t end = all->first + all->count;
	struct run run = { .region = all->region };

	while (*page < end && (states[*page] & mask) != wanted)
		++*page;
	run.first = *page;
	while (*page < end && run.count < RUN_PAGES && (states[*page] & mask) == wanted) {
		++*page;
		run.count++;
	}
	return run;
}

/*---- Copying ----*/

static struct memory_range range_of(const struct run *run)
{
	return (struct memory_range){ .address = region_address(run->region, run->first),
				      .copy = run->region->bytes + run->first * HEAP_PAGE,
				      .length = run->count * HEAP_PAGE };
}

static void set_read(struct heap_copy *copy, struct region *region, size_t page, bool was_read)
{
	const unsigned int marked = region->states[page] & PAGE_MARKED;

	set_state(copy, region, page,
		  (was_read ? marked | PAGE_COPIED : PAGE_UNREADABLE) | (copy->holding ? PAGE_HELD : 0));
}

static void read_page_by_page(struct heap_copy *copy, const struct run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		struct run one = { run->region, run->first + i, 1 };
		struct memory_range range = range_of(&one);

		memory_read_ranges(copy->source, &range, 1);
		set_read(copy, run->region, one.first, range.status == MEMORY_OK);
	}
}

static bool may_copy(struct heap_copy *copy)
{
	if (copy->holding && !copy->was_stopped && !copy->may_go_on(copy->may_go_on_context))
		copy->was_stopped = true;
	return !copy->was_stopped;
}

static void read_runs(struct heap_copy *copy, const struct run *runs, size_t count)
{
	struct memory_range ranges[RANGES_AT_ONCE];

	if (count == 0 || !may_copy(copy))
		return;
	for (size_t i = 0; i < count; i++)
		ranges[i] = range_of(&runs[i]);
	memory_read_ranges(copy->source, ranges, count);
	for (size_t i = 0; i < count; i++) {
		copy->bytes += ranges[i].length;
		if (ranges[i].status != MEMORY_OK)
			read_page_by_page(copy, &runs[i]);
		else
			for (size_t page = 0; page < runs[i].count; page++)
				set_read(copy, runs[i].region, runs[i].first + page, true);
	}
}

/* Copy the pages in [first, end) that were never read. */
static void read_missing(struct heap_copy *copy, struct region *region, size_t first, size_t end)
{
	const struct run wanted = { region, first, end - first };
	size_t page = first;

	while (page < end) {
		struct run run = next_run(&wanted, &page, PAGE_COPIED | PAGE_UNREADABLE, 0);

		if (run.count)
			read_runs(copy, &run, 1);
	}
}

/* Copy pages with these states, some more than bytes of them. */
static void read_again(struct heap_copy *copy, unsigned int states, uint64_t bytes)
{
	struct run runs[RANGES_AT_ONCE];
	uint64_t done = 0, collected = 0;
	size_t count = 0;

	for (size_t i = 0; i < copy->regions.count; i++) {
		const struct run all = all_pages(&copy->regions.regions[i]);
		size_t page = all.first;

		while (page < all.first + all.count && done < bytes) {
			struct run run = next_run(&all, &page, states, states);

			if (run.count == 0)
				break;
			runs[count++] = run;
			done += run.count * HEAP_PAGE;
			if (count == RANGES_AT_ONCE || done - collected >= BYTES_AT_ONCE) {
				read_runs(copy, runs, count);
				collected = done;
				count = 0;
			}
		}
	}
	read_runs(copy, runs, count);
}

void heap_copy_again(struct heap_copy *copy, uint64_t bytes)
{
	read_again(copy, PAGE_COPIED, bytes);
}

void heap_copy_again_marked(struct heap_copy *copy, uint64_t bytes)
{
	read_again(copy, PAGE_COPIED | PAGE_MARKED, bytes);
}

/* Does nobody know what is in this region, as nothing of it was asked for? */
static bool is_out_of_use(struct region *region)
{
	return !region->bytes && !region->is_new;
}

/* Copy what has content of these pages. */
static void fill_run(struct heap_copy *copy, const struct run *pages, heap_copy_next *next, void *context)
{
	struct region *region = pages->region;
	uint64_t begin, stop;

	for (size_t page = pages->first; page < pages->first + pages->count;) {
		const struct run run = next_run(pages, &page, PAGE_COPIED | PAGE_UNREADABLE, 0);
		uint64_t at = region_address(region, run.first);

		while (run.count && may_copy(copy) &&
		       next(context, &at, region_address(region, run.first + run.count), &begin, &stop))
			read_missing(copy, region, region_page(region, begin), region_page(region, stop));
	}
}

static bool is_asked_for(const struct run *pages)
{
	for (size_t page = pages->first; page < pages->first + pages->count; page++)
		if (pages->region->states[page] & (PAGE_COPIED | PAGE_MISSED))
			return true;
	return false;
}

/* The same place is beside the same pages each time: what is filled does not spread. */
static void fill_near(struct heap_copy *copy, const struct run *all, heap_copy_next *next, void *context)
{
	const size_t end = all->first + all->count;
	struct run pages = { .region = all->region, .first = all->first };

	for (; pages.first < end; pages.first += pages.count) {
		pages.count = NEAR_PAGES - pages.first % NEAR_PAGES;
		if (pages.count > end - pages.first)
			pages.count = end - pages.first;
		if (is_asked_for(&pages))
			fill_run(copy, &pages, next, context);
	}
}

void heap_copy_fill(struct heap_copy *copy, enum heap_fill fill, heap_copy_next *next, void *context)
{
	for (size_t i = 0; i < copy->regions.count; i++) {
		struct region *region = &copy->regions.regions[i];
		struct run all;

		if (fill == HEAP_FILL_ALL && !is_out_of_use(region))
			region_reserve(region); /* without room, nothing of it is copied */
		all = all_pages(region);
		if (fill == HEAP_FILL_NEAR)
			fill_near(copy, &all, next, context);
		else
			fill_run(copy, &all, next, context);
	}
}

void heap_copy_begin_hold(struct heap_copy *copy, bool (*may_go_on)(void *context), void *context)
{
	copy->holding = true;
	copy->was_stopped = copy->is_short = false;
	copy->may_go_on = may_go_on;
	copy->may_go_on_context = context;
	for (size_t i = 0; i < copy->regions.count; i++) {
		const struct run all = all_pages(&copy->regions.regions[i]);

		for (size_t page = all.first; page < all.first + all.count; page++)
			all.region->states[page] &= (uint8_t) ~(PAGE_HELD | PAGE_CHANGED);
	}
	copy->changed = 0;
}

bool heap_copy_end_hold(struct heap_copy *copy)
{
	const bool was_stopped = copy->was_stopped;

	copy->holding = copy->was_stopped = false;
	return !was_stopped;
}

/*---- Copying only what changes ----*/

static void mark_pages(struct heap_copy *copy, struct region *region, uint64_t begin, uint64_t end)
{
	for (size_t page = region_page(region, begin); page < region_page(region, end); page++)
		if (region->states[page] & PAGE_COPIED)
			set_state(copy, region, page, region->states[page] | PAGE_MARKED);
}

void heap_copy_mark(struct heap_copy *copy, heap_copy_next *next, void *context)
{
	for (size_t i = 0; i < copy->regions.count; i++) {
		const struct run all = all_pages(&copy->regions.regions[i]);
		uint64_t at = all.region->begin, begin, end;

		for (size_t page = all.first; page < all.first + all.count; page++)
			set_state(copy, all.region, page,
				  all.region->states[page] & ~(unsigned int)PAGE_MARKED);
		while (all.count && may_copy(copy) && next(context, &at, all.region->end, &begin, &end))
			mark_pages(copy, all.region, begin, end);
	}
}

/* Does something when a page differs from that of the source; fresh is NULL if that cannot be read. */
typedef void on_difference(struct heap_copy *copy, struct region *region, size_t page, const uint8_t *fresh);

static void compare_run(struct heap_copy *copy, const struct run *run, on_difference *differs)
{
	struct memory_range range = range_of(run);

	range.copy = copy->fresh;
	memory_read_ranges(copy->source, &range, 1);
	copy->bytes += range.length;
	for (size_t i = 0; i < run->count; i++) {
		const size_t page = run->first + i;
		const uint8_t *now = range.status == MEMORY_OK ? copy->fresh + i * HEAP_PAGE : NULL;

		if (!now || memcmp(now, run->region->bytes + page * HEAP_PAGE, HEAP_PAGE) != 0)
			differs(copy, run->region, page, now);
	}
}

/* Compare copied pages, of mask's states those that have the wanted ones. */
static void compare(struct heap_copy *copy, unsigned int mask, unsigned int wanted, on_difference *differs)
{
	for (size_t i = 0; i < copy->regions.count; i++) {
		const struct run all = all_pages(&copy->regions.regions[i]);
		size_t page = all.first;

		while (page < all.first + all.count) {
			const struct run run = next_run(&all, &page, mask, wanted);

			if (run.count)
				compare_run(copy, &run, differs);
		}
	}
}

static void take_over(struct heap_copy *copy, struct region *region, size_t page, const uint8_t *fresh)
{
	if (fresh)
		memcpy(region->bytes + page * HEAP_PAGE, fresh, HEAP_PAGE);
	set_state(copy, region, page, region->states[page] | PAGE_MARKED);
}

static void note_change(struct heap_copy *copy, struct region *region, size_t page, const uint8_t *fresh)
{
	(void)fresh;
	set_state(copy, region, page, region->states[page] | PAGE_MARKED | PAGE_CHANGED);
}

void heap_copy_follow(struct heap_copy *copy)
{
	compare(copy, PAGE_COPIED, PAGE_COPIED, take_over);
}

uint64_t heap_copy_check(struct heap_copy *copy)
{
	compare(copy, PAGE_COPIED | PAGE_HELD, PAGE_COPIED, note_change);
	return copy->changed;
}

bool heap_copy_has_changed(struct heap_copy *copy, uint64_t address, size_t length)
{
	const struct region *region = copy->changed ? regions_find(&copy->regions, address) : NULL;
	bool changed = false;

	if (!region || !region->bytes || length > region->end - address)
		return false;
	for (size_t page = region_page(region, address);
	     page < region_page(region, address + length + HEAP_PAGE - 1) && !changed; page++)
		changed = region->states[page] & PAGE_CHANGED;
	return changed;
}

/*---- Reading ----*/

/* Copy [first, end), and some pages more: objects that are made one after the other lie side by side. */
static void read_ahead(struct heap_copy *copy, struct region *region, size_t first, size_t end)
{
	const size_t last = region_page(region, region->end);
	size_t wanted = first + PAGES_AT_ONCE;

	if (wanted > last)
		wanted = last;
	read_missing(copy, region, first, wanted > end ? wanted : end);
}

static bool is_copied(const struct region *region, size_t first, size_t end)
{
	for (size_t page = first; page < end; page++)
		if (!(region->states[page] & PAGE_COPIED))
			return false;
	return true;
}

static void note_missed(struct region *region, size_t first, size_t end)
{
	for (size_t page = first; page < end; page++)
		if (!(region->states[page] & (PAGE_COPIED | PAGE_UNREADABLE)))
			region->states[page] |= PAGE_MISSED;
}

const uint8_t *heap_copy_view(struct heap_copy *copy, uint64_t address, size_t length)
{
	struct region *region = regions_find(&copy->regions, address);
	size_t first, end;

	if (!region || length > region->end - address)
		return NULL;
	if (!region_reserve(region)) {
		copy->is_short = true;
		return NULL;
	}
	first = region_page(region, address);
	end = region_page(region, address + length + HEAP_PAGE - 1);
	if (!is_copied(region, first, end)) {
		if (copy->sealed) {
			copy->missed++;
			note_missed(region, first, end);
			return NULL;
		}
		read_ahead(copy, region, first, end);
		if (!is_copied(region, first, end))
			return NULL;
	}
	return region->bytes + (address - region->room_begin);
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

uint64_t heap_copy_marked(const struct heap_copy *copy)
{
	return copy->marked;
}

uint64_t heap_copy_missed(const struct heap_copy *copy)
{
	return copy->missed;
}

bool heap_copy_is_short(const struct heap_copy *copy)
{
	return copy->is_short;
}
