/* SPDX-License-Identifier: MIT */
/* What a sample counts for by each weight, which clock has it, and how amounts read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "output/sample/amount_text.h"
#include "output/sample/weight.h"

static void a_clock_records_its_views_and_nothing_else(void **state)
{
	static const struct {
		enum weight_kind clock;
		unsigned int shown; /* a bit for each weight */
	} cases[] = {
		{ WEIGHT_CPU_TIME, 1u << WEIGHT_CPU_TIME },
		{ WEIGHT_WALL_TIME,
		  1u << WEIGHT_CPU_TIME | 1u << WEIGHT_WALL_TIME | 1u << WEIGHT_OFF_CPU_TIME },
		{ WEIGHT_ALLOC_BYTES, 1u << WEIGHT_ALLOC_BYTES | 1u << WEIGHT_ALLOC_OBJECTS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(weight_is_clock(cases[i].clock));
		for (enum weight_kind shown = 0; shown < WEIGHT_COUNT; shown++)
			assert_int_equal(weight_is_in(shown, cases[i].clock), cases[i].shown >> shown & 1);
	}
	assert_false(weight_is_clock(WEIGHT_OFF_CPU_TIME));
	assert_false(weight_is_clock(WEIGHT_ALLOC_OBJECTS));
	assert_false(weight_is_clock(WEIGHT_HEAP_BYTES));
}

static void each_weight_is_one_of_the_amounts(void **state)
{
	const struct sample sample = { .cpu_ns = 1, .wall_ns = 2, .alloc_bytes = 3, .alloc_objects = 4 };
	struct amounts sum = amounts_of(&sample);

	(void)state;
	amounts_add(&sum, &sum);
	assert_int_equal(weight_in(WEIGHT_CPU_TIME, &sum), 2);
	assert_int_equal(weight_in(WEIGHT_WALL_TIME, &sum), 4);
	assert_int_equal(weight_in(WEIGHT_OFF_CPU_TIME, &sum), 4);
	assert_int_equal(weight_in(WEIGHT_ALLOC_BYTES, &sum), 6);
	assert_int_equal(weight_in(WEIGHT_ALLOC_OBJECTS, &sum), 8);
	assert_int_equal(weight_of(WEIGHT_ALLOC_BYTES, &sample), 3);
}

static void assert_reads(enum weight_kind kind, uint64_t weight, const char *in_column, const char *alone)
{
	char text[AMOUNT_SIZE];

	assert_string_equal(amount_in_column(kind, weight, text), in_column);
	assert_string_equal(amount_alone(kind, weight, text), alone);
}

static void amounts_have_their_unit(void **state)
{
	(void)state;
	assert_reads(WEIGHT_CPU_TIME, 1500000, "1.5", "1.5 ms");
	assert_reads(WEIGHT_OFF_CPU_TIME, 0, "0.0", "0.0 ms");
	assert_reads(WEIGHT_ALLOC_BYTES, 0, "0 B", "0 B");
	assert_reads(WEIGHT_ALLOC_BYTES, 999, "999 B", "999 B");
	assert_reads(WEIGHT_ALLOC_BYTES, 1000, "1.0 kB", "1.0 kB");
	assert_reads(WEIGHT_ALLOC_BYTES, 999949, "999.9 kB", "999.9 kB");
	assert_reads(WEIGHT_ALLOC_BYTES, 999950, "1.0 MB", "1.0 MB");
	assert_reads(WEIGHT_ALLOC_BYTES, UINT64_MAX, "18.4 EB", "18.4 EB");
	assert_reads(WEIGHT_ALLOC_OBJECTS, 1234567, "1,234,567", "1,234,567 objects");
	assert_reads(WEIGHT_ALLOC_OBJECTS, UINT64_MAX, "18,446,744,073,709,551,615",
		     "18,446,744,073,709,551,615 objects");
	assert_string_equal(amount_column(WEIGHT_WALL_TIME), "ms");
	assert_string_equal(amount_column(WEIGHT_ALLOC_BYTES), "bytes");
	assert_string_equal(amount_column(WEIGHT_ALLOC_OBJECTS), "objects");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_records_its_views_and_nothing_else),
		cmocka_unit_test(each_weight_is_one_of_the_amounts),
		cmocka_unit_test(amounts_have_their_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
