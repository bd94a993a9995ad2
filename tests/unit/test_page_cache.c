/* SPDX-License-Identifier: MIT */
/* Memory that is read once, a page at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "memory/page_cache.h"

enum { PAGE = 4096, PART = 512, PAGES = 300, BASE = 0x10000, LONG = 256 << 10 };

/* Counts what is read of it. Each page holds its number and how often the memory has changed. */
static struct live {
	struct memory memory; /* must be first */
	uint8_t change;
	size_t reads, ranges, parts;
	size_t missing; /* this page cannot be read */
} live;

static void read_live(struct memory *memory, struct memory_range *ranges, size_t count)
{
	assert_ptr_equal(memory, &live.memory);
	live.reads += count != 0;
	for (size_t i = 0; i < count; i++) {
		size_t page = (size_t)(ranges[i].address - BASE) / PAGE;

		assert_int_equal(ranges[i].address % PART, 0);
		assert_int_equal(ranges[i].length % PART, 0);
		if (ranges[i].length < LONG)
			assert_in_range(ranges[i].address % PAGE + ranges[i].length, PART, PAGE);
		live.ranges++;
		live.parts += ranges[i].length / PART;
		ranges[i].status = page < PAGES && page != live.missing ? MEMORY_OK : MEMORY_UNMAPPED;
		memset(ranges[i].copy, (uint8_t)page ^ live.change, ranges[i].length);
	}
}

static int set_up(void **state)
{
	live = (struct live){ .memory = { .read_ranges = read_live }, .missing = PAGES };
	*state = page_cache_new(&live.memory);
	return *state == NULL;
}

static int tear_down(void **state)
{
	page_cache_free(*state);
	return 0;
}

static uint8_t byte_of(struct page_cache *cache, size_t page)
{
	uint8_t byte;

	assert_true(memory_u8(page_cache_memory(cache), BASE + page * PAGE + 7, &byte));
	return byte;
}

static void a_page_is_read_once(void **state)
{
	uint8_t bytes[2 * PAGE];

	assert_int_equal(byte_of(*state, 1), 1);
	assert_int_equal(byte_of(*state, 2), 2);
	assert_int_equal(byte_of(*state, 1), 1);
	assert_int_equal(live.ranges, 2);
	/* Across three pages, the last of them new. */
	assert_int_equal(memory_read(page_cache_memory(*state), BASE + PAGE + 100, bytes, sizeof(bytes)),
			 MEMORY_OK);
	assert_int_equal(bytes[0], 1);
	assert_int_equal(bytes[PAGE - 100], 2);
	assert_int_equal(bytes[sizeof(bytes) - 1], 3);
	assert_int_equal(live.ranges, 3);
}

static void what_is_kept_is_seen_in_place(void **state)
{
	struct memory *memory = page_cache_memory(*state);
	const uint8_t *view;

	assert_null(memory_view(memory, BASE + PAGE, 1));
	assert_int_equal(live.ranges, 0);
	assert_int_equal(byte_of(*state, 1), 1);
	assert_int_equal(byte_of(*state, 2), 2);
	view = memory_view(memory, BASE + PAGE, PAGE);
	assert_non_null(view);
	assert_int_equal(view[PAGE - 1], 1);
	assert_ptr_equal(memory_view(memory, BASE + PAGE + 100, PAGE - 100), view + 100);
	/* Its pages are apart. */
	assert_null(memory_view(memory, BASE + PAGE + 100, PAGE - 99));
	assert_null(memory_view(memory, BASE + PAGE, SIZE_MAX));
	assert_int_equal(live.ranges, 2);
}

static void what_is_read_stays_until_it_is_forgotten(void **state)
{
	assert_int_equal(byte_of(*state, 1), 1);
	live.change = 0x80;
	assert_int_equal(byte_of(*state, 1), 1);
	page_cache_forget(*state);
	assert_int_equal(byte_of(*state, 1), 0x81);
	assert_int_equal(live.reads, 2);
}

/* Change what is live, and copy so much of it again. */
static void assert_renewed(struct page_cache *cache, size_t ranges, size_t parts)
{
	live.change = 0x80;
	live.reads = live.ranges = live.parts = 0;
	page_cache_renew(cache);
	assert_int_equal(live.reads, 1);
	assert_int_equal(live.ranges, ranges);
	assert_int_equal(live.parts, parts);
}

static void used_pages_are_renewed_in_one_read(void **state)
{
	for (size_t page = 0; page < 10; page++)
		byte_of(*state, page);
	assert_renewed(*state, 10, 10);
	for (size_t page = 0; page < 10; page++)
		assert_int_equal(byte_of(*state, page), 0x80 | page);
	assert_int_equal(live.reads, 1);
}

static void pages_that_were_not_used_are_not_renewed(void **state)
{
	for (size_t page = 0; page < 10; page++)
		byte_of(*state, page);
	page_cache_renew(*state);
	byte_of(*state, 3);
	live.change = 0x80;
	live.ranges = live.parts = 0;
	page_cache_renew(*state);
	assert_int_equal(live.ranges, 1);
	assert_int_equal(byte_of(*state, 4), 0x84);
	assert_int_equal(live.ranges, 2);
}

static void what_cannot_be_read_any_more_is_not_there(void **state)
{
	uint8_t byte;

	byte_of(*state, 3);
	byte_of(*state, 4);
	live.missing = 3;
	page_cache_renew(*state);
	assert_int_equal(memory_read(page_cache_memory(*state), BASE + 3 * PAGE, &byte, 1), MEMORY_UNMAPPED);
	assert_int_equal(byte_of(*state, 4), 4);
	page_cache_renew(*state);
	live.missing = PAGES;
	assert_int_equal(byte_of(*state, 3), 3);
}

/* Neither the page before it nor the one behind it is taken for the one that is gone. */
static void a_page_that_is_gone_is_not_its_neighbour(void **state)
{
	uint8_t byte;

	for (size_t page = 3; page <= 5; page++)
		byte_of(*state, page);
	live.missing = 4;
	assert_renewed(*state, 3, 3);
	assert_int_equal(byte_of(*state, 3), 0x83);
	assert_int_equal(byte_of(*state, 5), 0x85);
	assert_int_equal(live.reads, 1);
	assert_int_equal(memory_read(page_cache_memory(*state), BASE + 4 * PAGE, &byte, 1), MEMORY_UNMAPPED);
}

static void only_the_parts_that_were_used_are_renewed(void **state)
{
	struct memory *memory = page_cache_memory(*state);
	uint8_t bytes[2 * PART];

	/* The second and third part, and the last one. */
	assert_int_equal(memory_read(memory, BASE + 3 * PART - 1, bytes, 2), MEMORY_OK);
	assert_int_equal(memory_read(memory, BASE + PART, bytes, PART), MEMORY_OK);
	assert_int_equal(memory_read(memory, BASE + PAGE - 1, bytes, 1), MEMORY_OK);
	assert_int_equal(live.parts, PAGE / PART);
	assert_renewed(*state, 2, 4);
	assert_int_equal(memory_read(memory, BASE + 2 * PART, bytes, 2 * PART), MEMORY_OK);
	assert_int_equal(live.reads, 1);
	/* What goes beyond is read then, with the rest of its page. */
	assert_int_equal(memory_read(memory, BASE + PAGE - PART - 1, bytes, 2), MEMORY_OK);
	assert_int_equal(bytes[0], 0x80);
	assert_int_equal(live.reads, 2);
	assert_int_equal(memory_read(memory, BASE, bytes, 1), MEMORY_OK);
	assert_int_equal(live.reads, 2);
}

static void a_page_may_end_before_its_rest_is_read(void **state)
{
	struct memory *memory = page_cache_memory(*state);
	uint8_t byte;

	byte_of(*state, 3);
	page_cache_renew(*state);
	live.missing = 3;
	assert_int_equal(memory_read(memory, BASE + 3 * PAGE + PART, &byte, 1), MEMORY_UNMAPPED);
	assert_int_equal(memory_read(memory, BASE + 3 * PAGE, &byte, 1), MEMORY_UNMAPPED);
	live.missing = PAGES;
	assert_int_equal(byte_of(*state, 3), 3);
}

static void many_pages_are_renewed_at_once(void **state)
{
	for (size_t page = 0; page < PAGES; page++)
		byte_of(*state, page);
	live.change = 0x80;
	live.reads = 0;
	page_cache_renew(*state);
	for (size_t page = 0; page < PAGES; page++)
		assert_int_equal(byte_of(*state, page), (uint8_t)page ^ 0x80);
	assert_int_equal(live.reads, 1);
}

/* A program's whole code, for example. */
static void a_long_read_is_not_kept(void **state)
{
	static uint8_t bytes[LONG];

	assert_int_equal(memory_read(page_cache_memory(*state), BASE + PAGE, bytes, LONG), MEMORY_OK);
	assert_int_equal(live.ranges, 1);
	assert_null(memory_view(page_cache_memory(*state), BASE + PAGE, 1));
	assert_int_equal(memory_read(page_cache_memory(*state), BASE + PAGE, bytes, LONG - PART), MEMORY_OK);
	assert_int_equal(live.ranges, 1 + LONG / PAGE);
	assert_non_null(memory_view(page_cache_memory(*state), BASE + PAGE, 1));
}

static void an_empty_cache_reads_nothing(void **state)
{
	page_cache_renew(*state);
	page_cache_forget(*state);
	assert_int_equal(live.reads, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_page_is_read_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_kept_is_seen_in_place, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_read_stays_until_it_is_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(used_pages_are_renewed_in_one_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pages_that_were_not_used_are_not_renewed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_any_more_is_not_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_page_that_is_gone_is_not_its_neighbour, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_the_parts_that_were_used_are_renewed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_page_may_end_before_its_rest_is_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_pages_are_renewed_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_long_read_is_not_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_empty_cache_reads_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
