/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "output/sample/histogram.h"

/* Within the promised precision of the true value. */
static void assert_close(uint64_t value, uint64_t expected)
{
	assert_in_range(value, expected - expected / HISTOGRAM_STEPS, expected + expected / HISTOGRAM_STEPS);
}

static void an_empty_histogram_has_no_percentiles(void **state)
{
	struct histogram histogram = { 0 };

	(void)state;
	assert_int_equal(histogram_percentile(&histogram, 500), 0);
	assert_int_equal(histogram.max, 0);
}

static void percentiles_are_within_the_promised_precision(void **state)
{
	struct histogram histogram = { 0 };

	(void)state;
	for (uint64_t value = 1; value <= 100000; value++)
		histogram_add(&histogram, value);
	assert_int_equal(histogram.count, 100000);
	assert_int_equal(histogram.max, 100000);
	for (unsigned per_mille = 1; per_mille <= 1000; per_mille++)
		assert_close(histogram_percentile(&histogram, per_mille), 100 * per_mille);
}

/* A percentile is a value that at most so many are larger than. */
static void of_few_values_the_highest_percentiles_are_the_largest_one(void **state)
{
	struct histogram histogram = { 0 };

	(void)state;
	for (uint64_t value = 1; value <= 5; value++)
		histogram_add(&histogram, value);
	assert_int_equal(histogram_percentile(&histogram, 500), 3);
	assert_int_equal(histogram_percentile(&histogram, 800), 4);
	assert_int_equal(histogram_percentile(&histogram, 801), 5);
	assert_int_equal(histogram_percentile(&histogram, 990), 5);
}

static void a_single_value_is_every_percentile(void **state)
{
	static const uint64_t values[] = {
		0, 1, 31, 32, 33, 63, 64, 7400, UINT64_C(1) << 40, UINT64_MAX / 2
	};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct histogram histogram = { 0 };

		histogram_add(&histogram, values[i]);
		assert_close(histogram_percentile(&histogram, 0), values[i]);
		assert_close(histogram_percentile(&histogram, 1000), values[i]);
		assert_int_equal(histogram.max, values[i]);
	}
}

static void values_of_zero_count(void **state)
{
	struct histogram histogram = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++)
		histogram_add(&histogram, 0);
	histogram_add(&histogram, 5);
	assert_int_equal(histogram_percentile(&histogram, 500), 0);
	assert_int_equal(histogram_percentile(&histogram, 750), 0);
	assert_int_equal(histogram_percentile(&histogram, 751), 5);
}

static void one_outlier_shows_in_the_maximum_only(void **state)
{
	struct histogram histogram = { 0 };

	(void)state;
	for (int i = 0; i < 999; i++)
		histogram_add(&histogram, 8);
	histogram_add(&histogram, 5000000);
	assert_int_equal(histogram_percentile(&histogram, 500), 8);
	assert_int_equal(histogram_percentile(&histogram, 999), 8);
	assert_close(histogram_percentile(&histogram, 1000), 5000000);
	assert_int_equal(histogram.max, 5000000);
}

static void an_earlier_state_can_be_taken_off(void **state)
{
	struct histogram histogram = { 0 }, earlier;

	(void)state;
	histogram_add(&histogram, 5);
	histogram_add(&histogram, 9000);
	earlier = histogram;
	histogram_add(&histogram, 30);
	histogram_add(&histogram, 40);
	assert_int_equal(histogram.sum, 9075);
	histogram_subtract(&histogram, &earlier);
	assert_int_equal(histogram.count, 2);
	assert_int_equal(histogram.sum, 70);
	assert_int_equal(histogram_percentile(&histogram, 500), 30);
	/* The largest value was an earlier one. */
	assert_int_equal(histogram.max, 40);
	histogram_subtract(&earlier, &earlier);
	assert_int_equal(earlier.max, 0);
	assert_int_equal(histogram_percentile(&earlier, 500), 0);
}

static void what_is_left_has_its_own_largest_value(void **state)
{
	struct histogram histogram = { 0 }, earlier;

	(void)state;
	histogram_add(&histogram, 1000);
	earlier = histogram;
	histogram_add(&histogram, 5000000);
	histogram_subtract(&histogram, &earlier);
	assert_int_equal(histogram.max, 5000000);
	/* As large a value as before, within the precision. */
	earlier = histogram;
	histogram_add(&histogram, 4999999);
	histogram_subtract(&histogram, &earlier);
	assert_close(histogram.max, 4999999);
	assert_int_equal(histogram_percentile(&histogram, 1000), histogram.max);
}

static void the_sum_of_two_has_the_values_of_both(void **state)
{
	static const uint64_t values[] = { 0, 1, 31, 32, 7400, 7401, UINT64_C(1) << 40, UINT64_MAX / 4 };
	enum { COUNT = sizeof(values) / sizeof(values[0]) };

	(void)state;
	for (size_t first = 0; first <= COUNT; first++) {
		struct histogram all = { 0 }, low = { 0 }, high = { 0 }, sum;

		for (size_t i = 0; i < COUNT; i++) {
			histogram_add(&all, values[i]);
			histogram_add(i < first ? &low : &high, values[i]);
		}
		sum = low;
		histogram_merge(&sum, &high);
		assert_memory_equal(&sum, &all, sizeof(all));
		histogram_merge(&high, &low);
		assert_memory_equal(&high, &all, sizeof(all));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_histogram_has_no_percentiles),
		cmocka_unit_test(percentiles_are_within_the_promised_precision),
		cmocka_unit_test(of_few_values_the_highest_percentiles_are_the_largest_one),
		cmocka_unit_test(a_single_value_is_every_percentile),
		cmocka_unit_test(values_of_zero_count),
		cmocka_unit_test(one_outlier_shows_in_the_maximum_only),
		cmocka_unit_test(an_earlier_state_can_be_taken_off),
		cmocka_unit_test(the_sum_of_two_has_the_values_of_both),
		cmocka_unit_test(what_is_left_has_its_own_largest_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
