/* SPDX-License-Identifier: MIT */
/* Ranges of addresses that grow, shrink, join and part, and what of their bytes stays. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "unwind/heap/heap_regions.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

enum { GROWTH = 256 << 20 };
static const uint64_t BASE = (uint64_t)1 << 32;

static struct regions regions;
static size_t rooms_left; /* how many mappings succeed before the others fail */
static size_t longest_room;

INSTEAD_OF(mmap);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	if (rooms_left == 0 || length > longest_room)
		return MAP_FAILED;
	rooms_left--;
	return __real_mmap(address, length, protection, flags, fd, offset);
}

static int begin(void **state)
{
	(void)state;
	regions = (struct regions){ 0 };
	rooms_left = longest_room = SIZE_MAX;
	return 0;
}

static int end(void **state)
{
	(void)state;
	regions_clear(&regions);
	assert_int_equal(regions.count, 0);
	assert_null(regions.regions);
	return 0;
}

static uint64_t page(uint64_t number)
{
	return BASE + number * HEAP_PAGE;
}

static struct heap_range pages(uint64_t first, uint64_t last)
{
	return (struct heap_range){ page(first), page(last), false };
}

static struct heap_range shared(uint64_t first, uint64_t last)
{
	return (struct heap_range){ page(first), page(last), true };
}

/* Set so many of the ranges. */
#define SET(...) \
	regions_set(&regions, (const struct heap_range[]){ __VA_ARGS__ }, \
		    sizeof((const struct heap_range[]){ __VA_ARGS__ }) / sizeof(struct heap_range))

static void assert_region(size_t number, uint64_t first, uint64_t last)
{
	assert_true(number < regions.count);
	assert_int_equal(regions.regions[number].begin, page(first));
	assert_int_equal(regions.regions[number].end, page(last));
}

/* As if the page had been copied: with its number all over. */
static void copy_page(uint64_t number)
{
	struct region *region = regions_find(&regions, page(number));

	assert_non_null(region);
	assert_true(region_reserve(region));
	memset(region->bytes + (page(number) - region->room_begin), (int)number, HEAP_PAGE);
	region->states[region_page(region, page(number))] = PAGE_COPIED;
}

static void copy_pages(uint64_t first, uint64_t last)
{
	for (uint64_t number = first; number < last; number++)
		copy_page(number);
}

static unsigned int state_of(uint64_t number)
{
	const struct region *region = regions_find(&regions, page(number));

	assert_non_null(region);
	return region->bytes ? region->states[region_page(region, page(number))] : PAGE_UNKNOWN;
}

/* These pages are copied, and hold what they held. */
static void assert_copied(uint64_t first, uint64_t last)
{
	for (uint64_t number = first; number < last; number++) {
		const struct region *region = regions_find(&regions, page(number));
		const uint8_t *bytes;

		assert_int_equal(state_of(number), PAGE_COPIED);
		bytes = region->bytes + (page(number) - region->room_begin);
		assert_int_equal(bytes[0], number);
		assert_int_equal(bytes[HEAP_PAGE - 1], number);
	}
}

static void assert_unknown(uint64_t first, uint64_t last)
{
	for (uint64_t number = first; number < last; number++)
		assert_int_equal(state_of(number), PAGE_UNKNOWN);
}

/*---- Ranges ----*/

static void neighbours_are_one_region(void **state)
{
	(void)state;
	assert_int_equal(SET(pages(0, 2), pages(2, 3), pages(4, 6)), 0);
	assert_int_equal(regions.count, 2);
	assert_region(0, 0, 3);
	assert_region(1, 4, 6);
	/* Not those of which others write in one. */
	assert_int_equal(SET(pages(0, 2), shared(2, 3), shared(3, 5), pages(5, 6)), 0);
	assert_int_equal(regions.count, 3);
	assert_region(0, 0, 2);
	assert_region(1, 2, 5);
	assert_region(2, 5, 6);
	assert_false(regions.regions[0].shared);
	assert_true(regions.regions[1].shared);
	assert_false(regions.regions[2].shared);
}

static void ranges_of_no_sense_are_left_out(void **state)
{
	struct heap_range early = pages(4, 6), late = pages(4, 6);

	(void)state;
	early.begin -= 8;
	late.end -= 8;
	assert_int_equal(SET(pages(3, 3), early, late), 0);
	assert_int_equal(regions.count, 0);
	assert_null(regions_find(&regions, page(4)));
	assert_int_equal(SET(pages(0, 3), pages(2, 5), pages(9, 8), pages(6, 7)), 0);
	assert_int_equal(regions.count, 2);
	assert_region(0, 0, 3);
	assert_region(1, 6, 7);
}

static void an_address_is_in_one_region_or_none(void **state)
{
	(void)state;
	assert_null(regions_find(&regions, page(0)));
	assert_int_equal(SET(pages(0, 2), pages(4, 6), pages(8, 10), pages(12, 13)), 0);
	/* Whichever was found last. */
	for (size_t last = 0; last < regions.count; last++) {
		for (size_t i = 0; i < regions.count; i++) {
			struct region *region = &regions.regions[i];

			assert_non_null(regions_find(&regions, regions.regions[last].begin));
			assert_ptr_equal(regions_find(&regions, region->begin), region);
			assert_non_null(regions_find(&regions, regions.regions[last].begin));
			assert_ptr_equal(regions_find(&regions, region->end - 1), region);
			assert_non_null(regions_find(&regions, regions.regions[last].begin));
			assert_null(regions_find(&regions, region->end));
			assert_null(regions_find(&regions, region->begin - 1));
		}
	}
	assert_null(regions_find(&regions, 0));
	assert_null(regions_find(&regions, UINT64_MAX));
}

static void what_comes_later_is_new(void **state)
{
	(void)state;
	assert_int_equal(SET(pages(0, 2), pages(4, 6), pages(8, 10)), 0);
	for (size_t i = 0; i < regions.count; i++)
		assert_false(regions.regions[i].is_new);
	/* Shrunk, grown, another, and one to which others write. */
	assert_int_equal(SET(pages(0, 1), pages(4, 7), pages(12, 13), shared(14, 15)), 0);
	assert_int_equal(regions.count, 4);
	assert_false(regions.regions[0].is_new);
	assert_true(regions.regions[1].is_new);
	assert_true(regions.regions[2].is_new);
	assert_false(regions.regions[3].is_new);
	/* It stays new, and what it becomes a part of is, too. */
	assert_int_equal(SET(pages(0, 1), pages(4, 7), pages(12, 13)), 0);
	assert_false(regions.regions[0].is_new);
	assert_true(regions.regions[1].is_new);
	assert_true(regions.regions[2].is_new);
	/* Joined over a gap, which is new. */
	regions_clear(&regions);
	assert_int_equal(SET(pages(0, 2), pages(3, 5)), 0);
	assert_int_equal(SET(pages(0, 5)), 0);
	assert_true(regions.regions[0].is_new);
	regions_clear(&regions);
	assert_int_equal(SET(pages(0, 5)), 0);
	assert_int_equal(SET(pages(0, 2), pages(2, 5)), 0);
	assert_false(regions.regions[0].is_new);
}

/*---- Room ----*/

static void there_is_room_on_both_sides(void **state)
{
	const struct heap_range at_the_ends[] = { { HEAP_PAGE, 2 * HEAP_PAGE, false },
						  { -(uint64_t)3 * HEAP_PAGE, -(uint64_t)HEAP_PAGE, false } };
	struct region *region;

	(void)state;
	assert_int_equal(SET(pages(0, 2)), 0);
	region = &regions.regions[0];
	assert_null(region->bytes);
	assert_true(region_reserve(region));
	assert_int_equal(region->room_begin, region->begin - GROWTH);
	assert_int_equal(region->room_end, region->end + GROWTH);
	assert_int_equal(region_page(region, region->begin), GROWTH / HEAP_PAGE);
	assert_int_equal(region_address(region, GROWTH / HEAP_PAGE), region->begin);
	/* As far as there are addresses. */
	assert_int_equal(regions_set(&regions, at_the_ends, 2), 0);
	region = &regions.regions[0];
	assert_true(region_reserve(region));
	assert_int_equal(region->room_begin, 0);
	assert_int_equal(region->room_end, region->end + GROWTH);
	region = &regions.regions[1];
	assert_true(region_reserve(region));
	assert_int_equal(region->room_begin, region->begin - GROWTH);
	assert_int_equal(region->room_end, region->end);
	assert_int_equal(region->states[region_page(region, region->end) - 1], PAGE_UNKNOWN);
}

static void without_so_much_room_the_region_has_its_own(void **state)
{
	struct region *region;

	(void)state;
	assert_int_equal(SET(pages(0, 2)), 0);
	region = &regions.regions[0];
	longest_room = GROWTH;
	assert_true(region_reserve(region));
	assert_int_equal(region->room_begin, region->begin);
	assert_int_equal(region->room_end, region->end);
	copy_pages(0, 2);
	/* To grow, it moves. */
	longest_room = SIZE_MAX;
	assert_int_equal(SET(pages(0, 4)), 0);
	assert_copied(0, 2);
	assert_unknown(2, 4);
	copy_pages(2, 4);
	assert_copied(0, 4);
}

static void a_region_without_memory_has_none(void **state)
{
	struct region *region;

	(void)state;
	assert_int_equal(SET(pages(0, 2)), 0);
	region = &regions.regions[0];
	rooms_left = 0;
	assert_false(region_reserve(region));
	assert_null(region->bytes);
	/* Its pages' states need some, too: after a failure there is the small room. */
	rooms_left = SIZE_MAX;
	allocation_fails_after(0);
	assert_true(region_reserve(region));
	assert_true(allocation_failed());
	assert_int_equal(region->room_begin, region->begin);
}

static void a_region_that_grows_stays_where_it_is(void **state)
{
	const uint8_t *bytes;

	(void)state;
	assert_int_equal(SET(pages(10, 12)), 0);
	copy_pages(10, 12);
	bytes = regions.regions[0].bytes;
	assert_int_equal(SET(pages(5, 20)), 0);
	assert_ptr_equal(regions.regions[0].bytes, bytes);
	assert_copied(10, 12);
	assert_unknown(5, 10);
	assert_unknown(12, 20);
	/* All of its room is its own. */
	rooms_left = 0;
	assert_int_equal(
		regions_set(&regions, &(struct heap_range){ page(10) - GROWTH, page(12) + GROWTH, false }, 1),
		0);
	assert_ptr_equal(regions.regions[0].bytes, bytes);
	assert_copied(10, 12);
}

/*---- What stays ----*/

static void what_is_outside_for_a_while_is_forgotten(void **state)
{
	(void)state;
	assert_int_equal(SET(pages(0, 10)), 0);
	copy_pages(0, 10);
	assert_int_equal(SET(pages(3, 7)), 0);
	assert_copied(3, 7);
	assert_int_equal(SET(pages(0, 10)), 0);
	assert_unknown(0, 3);
	assert_copied(3, 7);
	assert_unknown(7, 10);
	/* Nothing of what was there can be seen. */
	assert_int_equal(regions.regions[0].bytes[page(3) - regions.regions[0].room_begin - 1] |
				 regions.regions[0].bytes[page(7) - regions.regions[0].room_begin],
			 0);
	/* The region moves past all that it was. */
	assert_int_equal(SET(pages(20, 30)), 0);
	assert_unknown(20, 30);
	assert_int_equal(SET(pages(0, 30)), 0);
	assert_unknown(0, 30);
}

static void parts_of_a_region_keep_their_pages(void **state)
{
	(void)state;
	assert_int_equal(SET(pages(0, 20)), 0);
	copy_pages(0, 20);
	assert_int_equal(SET(pages(1, 4), pages(6, 7), pages(10, 19)), 0);
	assert_copied(1, 4);
	assert_copied(6, 7);
	assert_copied(10, 19);
	/* And together again. */
	assert_int_equal(SET(pages(0, 20)), 0);
	assert_copied(1, 4);
	assert_copied(6, 7);
	assert_copied(10, 19);
	assert_unknown(0, 1);
	assert_unknown(4, 6);
	assert_unknown(7, 10);
	assert_unknown(19, 20);
}

static void pages_move_with_their_states(void **state)
{
	(void)state;
	assert_int_equal(SET(pages(0, 4), pages(6, 8)), 0);
	copy_pages(0, 4);
	copy_pages(6, 8);
	regions.regions[1].states[region_page(&regions.regions[1], page(7))] = PAGE_COPIED | PAGE_MARKED;
	assert_int_equal(SET(pages(0, 8)), 0);
	assert_copied(0, 4);
	assert_copied(6, 7);
	assert_int_equal(state_of(7), PAGE_COPIED | PAGE_MARKED);
}

static void what_could_not_be_read_is_unknown_again(void **state)
{
	struct region *region;

	(void)state;
	assert_int_equal(SET(pages(0, 4)), 0);
	copy_pages(1, 3);
	region = &regions.regions[0];
	region->states[region_page(region, page(0))] = PAGE_UNREADABLE;
	region->states[region_page(region, page(3))] = PAGE_UNREADABLE | PAGE_HELD;
	assert_int_equal(SET(pages(0, 4)), 0);
	assert_unknown(0, 1);
	assert_copied(1, 3);
	assert_unknown(3, 4);
}

static void when_memory_is_short_the_regions_are_set_and_pages_lost(void **state)
{
	(void)state;
	/* The first part takes the room; the second, which may not be copied, is lost. */
	assert_int_equal(SET(pages(0, 20)), 0);
	copy_pages(0, 20);
	rooms_left = 0;
	assert_int_equal(SET(pages(0, 4), pages(6, 8), pages(9, 10)), -ENOMEM);
	assert_int_equal(regions.count, 3);
	assert_copied(0, 4);
	assert_unknown(6, 8);
	/* Without a list of them, nothing changes. */
	allocation_fails_after(0);
	assert_int_equal(SET(pages(0, 2)), -ENOMEM);
	assert_true(allocation_failed());
	assert_int_equal(regions.count, 3);
	assert_copied(0, 4);
}

#define OF_REGIONS(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF_REGIONS(neighbours_are_one_region),
		OF_REGIONS(ranges_of_no_sense_are_left_out),
		OF_REGIONS(an_address_is_in_one_region_or_none),
		OF_REGIONS(what_comes_later_is_new),
		OF_REGIONS(there_is_room_on_both_sides),
		OF_REGIONS(without_so_much_room_the_region_has_its_own),
		OF_REGIONS(a_region_without_memory_has_none),
		OF_REGIONS(a_region_that_grows_stays_where_it_is),
		OF_REGIONS(what_is_outside_for_a_while_is_forgotten),
		OF_REGIONS(parts_of_a_region_keep_their_pages),
		OF_REGIONS(pages_move_with_their_states),
		OF_REGIONS(what_could_not_be_read_is_unknown_again),
		OF_REGIONS(when_memory_is_short_the_regions_are_set_and_pages_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
