/* SPDX-License-Identifier: MIT */
/* Allocators' memory as it should be, and as it should not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/range_bytes.h"
#include "src/footprint/pieces/lj_alloc.h"
#include "src/footprint/pieces/slab_zone.h"

enum { IMAGE_BYTES = 1 << 16, BASE = 1 << 24 };

struct image {
	struct memory memory;
	uint64_t words[IMAGE_BYTES / 8];
	struct page_runs runs;
	struct window window;
};

static void read_image(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct image *image = (const struct image *)memory;

	range_bytes(ranges, count, BASE, image->words, IMAGE_BYTES);
}

static int set_up(void **state)
{
	static struct image image;

	image = (struct image){ .memory = { .read_ranges = read_image } };
	assert_int_equal(page_runs_add(&image.runs, BASE, BASE + IMAGE_BYTES, true), 0);
	assert_int_equal(window_open(&image.memory, &image.runs, &image.window), 0);
	*state = &image;
	return 0;
}

static int tear_down(void **state)
{
	struct image *image = *state;

	window_close(&image->window);
	page_runs_clear(&image->runs);
	return 0;
}

static void set(struct image *image, uint64_t offset, uint64_t word)
{
	image->words[offset / 8] = word;
}

/* A segment that begins with its malloc_state: a free chunk of 256 bytes, one of 64 in use, the top. */
static void make_segment(struct image *image)
{
	for (uint64_t i = 0; i < 4; i++) {
		set(image, 16 + 56 + 16 * i + 16, BASE + 16 + 56 + 16 * i);
		set(image, 16 + 56 + 16 * i + 24, BASE + 16 + 56 + 16 * i);
	}
	set(image, 16 + 840, BASE);
	set(image, 16 + 848, IMAGE_BYTES);
	set(image, 8, 0x370 | 3);
	set(image, 0x370 + 8, 0x100 | 1);
	set(image, 0x470 + 8, 0x40 | 2);
	set(image, 0x4b0 + 8, (IMAGE_BYTES - 0x4b0 - 64) | 1);
}

static void test_free_chunks_of_a_segment(void **state)
{
	struct image *image = *state;
	struct lj_alloc alloc;

	make_segment(image);
	assert_int_equal(lj_alloc_read(&image->window, BASE + 16, &alloc), LJ_ALLOC_OK);
	assert_int_equal(alloc.count, 1);
	assert_true(alloc.segments[0].is_told);
	assert_int_equal(alloc.segments[0].free, 0x100 + IMAGE_BYTES - 0x4b0 - 64);
	assert_int_equal(alloc.segments[0].free_here.exclusive, alloc.segments[0].free);
	lj_alloc_clear(&alloc);
}

static void test_a_chunk_that_leads_nowhere(void **state)
{
	static const uint64_t heads[] = { 0, 1, 0x10 | 1, 0x104 | 1, 0x100, 0x20000 | 1, UINT64_MAX };
	struct image *image = *state;
	struct lj_alloc alloc;

	make_segment(image);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		set(image, 0x370 + 8, heads[i]);
		assert_int_equal(lj_alloc_read(&image->window, BASE + 16, &alloc), LJ_ALLOC_OK);
		assert_false(alloc.segments[0].is_told);
		assert_int_equal(alloc.segments[0].free, 0);
		lj_alloc_clear(&alloc);
	}
}

static void test_segments_in_a_circle(void **state)
{
	struct image *image = *state;
	struct lj_alloc alloc;

	make_segment(image);
	set(image, 16 + 856, BASE + 16 + 840);
	assert_int_equal(lj_alloc_read(&image->window, BASE + 16, &alloc), LJ_ALLOC_UNSTEADY);
}

static void test_another_allocator(void **state)
{
	struct image *image = *state;
	struct lj_alloc alloc;

	assert_int_equal(lj_alloc_read(&image->window, BASE + 16, &alloc), LJ_ALLOC_NONE);
	assert_int_equal(lj_alloc_read(&image->window, 0, &alloc), LJ_ALLOC_NONE);
	assert_int_equal(lj_alloc_read(&image->window, UINT64_MAX - 7, &alloc), LJ_ALLOC_NONE);
}

/* ngx_slab_pool_t of today: 14 pages, of which 9 and 2 are free. */
static void make_zone(struct image *image)
{
	set(image, 8, 8);
	set(image, 16, 3);
	set(image, 24, BASE + 0x400);
	set(image, 32, BASE + 0x400 + 14 * 24);
	set(image, 48, BASE + 0x400 + 24);
	set(image, 72, 11);
	set(image, 80, BASE + 0x2000);
	set(image, 88, BASE + IMAGE_BYTES);
	set(image, 0x400 + 24, 9);
	set(image, 0x400 + 24 + 8, BASE + 0x400 + 12 * 24);
	set(image, 0x400 + 12 * 24, 2);
	set(image, 0x400 + 12 * 24 + 8, BASE + 40);
	set(image, 120, BASE + 0x1000);
	memcpy(&image->words[0x1000 / 8], " in lua_shared_dict zone \"dogs\"", 32);
}

static void test_a_zone(void **state)
{
	struct image *image = *state;
	struct slab_zone zone;

	make_zone(image);
	assert_true(slab_zone_read(&image->window, BASE, BASE + IMAGE_BYTES, &zone));
	assert_string_equal(zone.name, "dogs");
	assert_string_equal(zone.kind, "lua_shared_dict zone");
	assert_true(zone.knows_free);
	assert_int_equal(zone.usable, 14 * 4096);
	assert_int_equal(zone.free, 11 * 4096);
}

static void test_a_zone_whose_free_pages_are_a_circle(void **state)
{
	struct image *image = *state;
	struct slab_zone zone;

	make_zone(image);
	set(image, 0x400 + 12 * 24 + 8, BASE + 0x400 + 24);
	assert_true(slab_zone_read(&image->window, BASE, BASE + IMAGE_BYTES, &zone));
	assert_false(zone.knows_free);
	assert_int_equal(zone.free, 0);
}

static void test_no_zone(void **state)
{
	struct image *image = *state;
	struct slab_zone zone;

	assert_false(slab_zone_read(&image->window, BASE, BASE + IMAGE_BYTES, &zone));
	make_zone(image);
	set(image, 80, BASE + 0x2008);
	assert_false(slab_zone_read(&image->window, BASE, BASE + IMAGE_BYTES, &zone));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_free_chunks_of_a_segment),
		TEST(test_a_chunk_that_leads_nowhere),
		TEST(test_segments_in_a_circle),
		TEST(test_another_allocator),
		TEST(test_a_zone),
		TEST(test_a_zone_whose_free_pages_are_a_circle),
		TEST(test_no_zone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
