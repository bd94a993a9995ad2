/* SPDX-License-Identifier: MIT */
/* What a mapping is, to whom its pages are given, and what part of those that other processes have, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/one_taking.h"

enum {
	BEGIN = 0x10000,
	SHARED = 0x18000, /* up to here, the process has all pages alone */
	END = 0x20000,
	CLAIM = 0x14000,
	CLAIM_END = 0x1c000,
	KIB = 1024,
	TEXT_SIZE = 1024,
};

/* One mapping of such a file, with those figures, and how much of it is in memory. */
static void map_file(const char *file, unsigned int rss_kib, unsigned int pss_kib, uint64_t in_memory)
{
	char text[TEXT_SIZE];
	int length = snprintf(text, sizeof(text),
			      "%x-%x %s\n"
			      "Rss: %u kB\n"
			      "Pss: %u kB\n",
			      BEGIN, END, file, rss_kib, pss_kib);

	assert_int_equal(smaps_parse(text, (size_t)length, &taking.smaps), 0);
	assert_int_equal(page_runs_add(&taking.runs, BEGIN, SHARED, true), 0);
	if (in_memory > SHARED)
		assert_int_equal(page_runs_add(&taking.runs, SHARED, in_memory, false), 0);
}

static void map(unsigned int rss_kib, unsigned int pss_kib, uint64_t in_memory)
{
	map_file("rw-p 00000000 08:01 7 /srv/data", rss_kib, pss_kib, in_memory);
}

/* The VM has the middle of it, and some of that is free. */
static void claim(struct page_sum free)
{
	struct claim claim = { .begin = CLAIM, .end = CLAIM_END, .free = free };

	assert_int_equal(footprint_row(taking.report, FOOTPRINT_LUA_HEAP, NULL, 1, &claim.row), 0);
	assert_int_equal(footprint_row(taking.report, FOOTPRINT_LUA_FREE, NULL, 1, &claim.free_row), 0);
	assert_int_equal(claims_add(&taking.claims, &claim), 0);
}

static const struct footprint_row *row_of(enum footprint_kind kind)
{
	for (size_t i = 0; i < taking.report->row_count; i++)
		if (taking.report->rows[i].kind == kind)
			return &taking.report->rows[i];
	fail();
	return NULL;
}

#define ASSERT_ROW(kind, rss_bytes, pss_bytes) \
	do { \
		assert_int_equal(row_of(kind)->rss, rss_bytes); \
		assert_int_equal(row_of(kind)->pss, pss_bytes); \
	} while (0)

static uint64_t pss_of_all(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < taking.report->row_count; i++)
		sum += taking.report->rows[i].pss;
	return sum;
}

static int begin(void **state)
{
	(void)state;
	return taking_begin() ? 0 : -1;
}

/* Two processes have the shared half. */
static void shared_pages_count_by_their_share(void **state)
{
	(void)state;
	map(64, 48, END);
	claim((struct page_sum){ .exclusive = 0x1000, .shared = 0x1000 });
	assert_int_equal(taking_account(&taking), 0);
	ASSERT_ROW(FOOTPRINT_LUA_HEAP, 0x6000, 0x4800);
	ASSERT_ROW(FOOTPRINT_LUA_FREE, 0x2000, 0x1800);
	ASSERT_ROW(FOOTPRINT_DATA, 0x8000, 0x6000);
	assert_int_equal(row_of(FOOTPRINT_DATA)->size, 0x8000);
	assert_int_equal(row_of(FOOTPRINT_DATA)->count, 2);
	assert_int_equal(taking.report->rss, 64 * KIB);
	assert_int_equal(taking.report->pss, 48 * KIB);
}

/* The rows have the whole share of a mapping, also where it cannot be divided evenly. */
static void nothing_is_lost_in_rounding(void **state)
{
	for (unsigned int pss_kib = 33; pss_kib < 64; pss_kib++) {
		if (pss_kib > 33) {
			taking_end(state);
			begin(state);
		}
		map(64, pss_kib, END);
		claim((struct page_sum){ .exclusive = 0x1000, .shared = 0x1000 });
		assert_int_equal(taking_account(&taking), 0);
		assert_int_equal(pss_of_all(), pss_kib * KIB);
	}
}

/* More are the process's alone than the mapping's share has, as it shared some of them a moment ago. */
static void the_share_is_never_more_than_the_mappings(void **state)
{
	(void)state;
	map(32, 16, SHARED);
	claim((struct page_sum){ .exclusive = 0 });
	assert_int_equal(taking_account(&taking), 0);
	ASSERT_ROW(FOOTPRINT_LUA_HEAP, 0x4000, 0x2000);
	ASSERT_ROW(FOOTPRINT_DATA, 0x4000, 0x2000);
}

static void pages_that_came_meanwhile_are_the_mappings(void **state)
{
	(void)state;
	map(40, 40, SHARED);
	claim((struct page_sum){ .exclusive = 0 });
	assert_int_equal(taking_account(&taking), 0);
	ASSERT_ROW(FOOTPRINT_LUA_HEAP, 0x4000, 0x4000);
	ASSERT_ROW(FOOTPRINT_DATA, 0x6000, 0x6000);
}

/* Pages of zeros look like shared ones, but do not count: first they are left out, then others. */
static void pages_that_do_not_count_are_left_out(void **state)
{
	(void)state;
	map(32, 32, END);
	claim((struct page_sum){ .exclusive = 0 });
	assert_int_equal(taking_account(&taking), 0);
	ASSERT_ROW(FOOTPRINT_LUA_HEAP, 0x4000, 0x4000);
	ASSERT_ROW(FOOTPRINT_DATA, 0x4000, 0x4000);
	taking_end(state);
	begin(state);
	map(16, 16, END);
	claim((struct page_sum){ .exclusive = 0 });
	assert_int_equal(taking_account(&taking), 0);
	assert_int_equal(row_of(FOOTPRINT_LUA_HEAP)->rss + row_of(FOOTPRINT_DATA)->rss, 16 * KIB);
	assert_int_equal(pss_of_all(), 16 * KIB);
}

static void what_is_not_in_memory_has_no_row(void **state)
{
	(void)state;
	map(0, 0, SHARED);
	assert_int_equal(taking_account(&taking), 0);
	assert_int_equal(taking.report->row_count, 0);
}

static void a_mapping_counts_as_what_it_is(void **state)
{
	static const struct {
		const char *file;
		enum footprint_kind kind;
		const char *name;
	} cases[] = {
		{ "rw-p 00000000 00:00 0 [stack]", FOOTPRINT_STACK, "of the first thread" },
		{ "rw-p 00000000 00:00 0 [heap]", FOOTPRINT_MALLOC, NULL },
		{ "rw-p 00000000 00:00 0", FOOTPRINT_ANONYMOUS, NULL },
		{ "rw-p 00000000 00:00 0 [anon:arena]", FOOTPRINT_ANONYMOUS, "[anon:arena]" },
		{ "r-xp 00000000 00:00 0 [vdso]", FOOTPRINT_KERNEL, "[vdso]" },
		{ "r-xp 00000000 08:01 7 /usr/bin/luajit", FOOTPRINT_CODE, "/usr/bin/luajit" },
		{ "rw-p 00000000 08:01 7 /usr/bin/luajit", FOOTPRINT_DATA, "/usr/bin/luajit" },
		{ "r--p 00000000 08:01 7 /usr/bin/luajit", FOOTPRINT_FILE, "/usr/bin/luajit" },
		{ "r--s 00000000 08:01 7 /srv/data", FOOTPRINT_FILE, "/srv/data" },
		{ "rw-s 00000000 08:01 7 /srv/data", FOOTPRINT_SHARED, "/srv/data" },
		{ "r--s 00000000 00:01 7 /dev/shm/zone", FOOTPRINT_SHARED, "/dev/shm/zone" },
		{ "r--s 00000000 00:01 7 /memfd:zone", FOOTPRINT_SHARED, "/memfd:zone" },
		{ "rw-s 00000000 00:01 7 /dev/zero", FOOTPRINT_SHARED, "/dev/zero" },
		/* What a private mapping has written is the process's own. */
		{ "rw-p 00000000 00:01 7 /dev/zero", FOOTPRINT_ANONYMOUS, "/dev/zero" },
		{ "rw-p 00000000 00:01 7 /dev/shm/zone", FOOTPRINT_DATA, "/dev/shm/zone" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (i) {
			taking_end(state);
			begin(state);
		}
		map_file(cases[i].file, 32, 32, SHARED);
		assert_int_equal(taking_account(&taking), 0);
		assert_int_equal(taking.report->row_count, 1);
		assert_int_equal(taking.report->rows[0].kind, cases[i].kind);
		if (cases[i].name)
			assert_string_equal(taking.report->rows[0].name, cases[i].name);
		else
			assert_null(taking.report->rows[0].name);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, taking_end)
	const struct CMUnitTest tests[] = {
		TEST(shared_pages_count_by_their_share),
		TEST(nothing_is_lost_in_rounding),
		TEST(the_share_is_never_more_than_the_mappings),
		TEST(pages_that_came_meanwhile_are_the_mappings),
		TEST(pages_that_do_not_count_are_left_out),
		TEST(what_is_not_in_memory_has_no_row),
		TEST(a_mapping_counts_as_what_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
