/* SPDX-License-Identifier: MIT */
/* Which stretches of a file's code are kept, and found again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/symbols/symbol_extents.h"

static struct symbol_extents extents;

static int begin(void **state)
{
	(void)state;
	extents = (struct symbol_extents){ 0 };
	return 0;
}

static int end(void **state)
{
	(void)state;
	symbol_extents_clear(&extents);
	assert_int_equal(extents.count, 0);
	assert_null(symbol_extents_find(&extents, 10));
	return 0;
}

static void add(uint64_t first, uint64_t last, const char *name)
{
	symbol_extents_add(&extents, (struct symbol_extent){ first, last }, name);
}

/* The name at an address: "-" if nothing is known, "" if it is known that there is none. */
static const char *name_at(uint64_t address)
{
	const struct known_extent *known = symbol_extents_find(&extents, address);

	if (!known)
		return "-";
	assert_true(address >= known->extent.begin && address < known->extent.end);
	return known->name ? known->name : "";
}

static void an_extent_is_found_by_each_of_its_addresses(void **state)
{
	char name[] = "one";

	(void)state;
	assert_string_equal(name_at(0), "-");
	add(10, 20, name);
	name[0] = 'x'; /* it has a copy */
	assert_string_equal(name_at(9), "-");
	for (uint64_t address = 10; address < 20; address++)
		assert_string_equal(name_at(address), "one");
	assert_string_equal(name_at(20), "-");
	assert_string_equal(name_at(UINT64_MAX), "-");
	add(20, 21, NULL);
	assert_string_equal(name_at(20), "");
	assert_string_equal(name_at(21), "-");
	assert_int_equal(extents.count, 2);
}

static void extents_come_in_any_order(void **state)
{
	static const uint64_t order[] = { 50, 10, 70, 0, 30, 60, 20, 40 };
	char name[8];

	(void)state;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		snprintf(name, sizeof(name), "%u", (unsigned int)order[i]);
		add(order[i], order[i] + 10 - i % 2, name);
		for (size_t n = 0; n <= i; n++) {
			snprintf(name, sizeof(name), "%u", (unsigned int)order[n]);
			assert_string_equal(name_at(order[n]), name);
			assert_string_equal(name_at(order[n] + 8), name);
			assert_string_equal(name_at(order[n] + 9), n % 2 ? "-" : name);
		}
	}
	assert_int_equal(extents.count, 8);
}

static void what_is_known_stays(void **state)
{
	static const struct symbol_extent overlaps[] = { { 10, 20 }, { 19, 30 }, { 5, 11 }, { 12, 15 },
							 { 0, 100 }, { 10, 11 }, { 19, 20 } };

	(void)state;
	add(10, 20, "one");
	for (size_t i = 0; i < sizeof(overlaps) / sizeof(overlaps[0]); i++)
		symbol_extents_add(&extents, overlaps[i], "another");
	assert_int_equal(extents.count, 1);
	assert_string_equal(name_at(15), "one");
	add(20, 30, "behind");
	add(5, 10, "before");
	assert_int_equal(extents.count, 3);
	assert_string_equal(name_at(9), "before");
	assert_string_equal(name_at(10), "one");
	assert_string_equal(name_at(20), "behind");
	/* From one that is known into one that is known. */
	add(29, 31, "another");
	add(30, 31, "last");
	assert_string_equal(name_at(30), "last");
}

static void so_many_are_kept(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < SYMBOL_EXTENTS_MAX + 2; i++)
		add(2 * i, 2 * i + 1, NULL);
	assert_int_equal(extents.count, SYMBOL_EXTENTS_MAX);
	assert_string_equal(name_at(2 * (SYMBOL_EXTENTS_MAX - 1)), "");
	assert_string_equal(name_at(2 * SYMBOL_EXTENTS_MAX), "-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_extent_is_found_by_each_of_its_addresses, begin, end),
		cmocka_unit_test_setup_teardown(extents_come_in_any_order, begin, end),
		cmocka_unit_test_setup_teardown(what_is_known_stays, begin, end),
		cmocka_unit_test_setup_teardown(so_many_are_kept, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
