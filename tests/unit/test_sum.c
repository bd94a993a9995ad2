/* SPDX-License-Identifier: MIT */
/* Several sources of samples as one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "output/views/sum.h"
#include "tests/unit/made_up_source.h"

enum { PARTS = 3 };

/* Times of the samples of each part; a sample's pid is its part. */
static const uint64_t times[PARTS][4] = { { 10, 20, 30, 40 }, { 1, 2, 22, 23 }, { 105, 115, 135, 145 } };

static struct sample samples[PARTS][4];
static struct made_up_source sources[PARTS];

/* The third part's clock is 100 ahead. */
static struct sum *begin(const uint64_t begins[PARTS])
{
	struct sum_part parts[PARTS];
	struct sum *sum;

	for (size_t i = 0; i < PARTS; i++) {
		for (size_t j = 0; j < 4; j++)
			samples[i][j] = (struct sample){ .time_ns = times[i][j],
							 .pid = (pid_t)i,
							 .stack = j };
		sources[i] = made_up_source(samples[i], 4);
		parts[i] = (struct sum_part){ .source = &sources[i].source,
					      .shift_ns = i == 2 ? (uint64_t)-100 : 0,
					      .begin_ns = begins[i] };
	}
	sum = sum_new(parts, PARTS);
	assert_non_null(sum);
	return sum;
}

/* Each sample's part and time. */
static const char *all_of(struct sum *sum, int *ret_end)
{
	static char text[512];
	struct sample sample;
	size_t end = 0;

	text[0] = '\0';
	while ((*ret_end = sum_samples(sum)->next(sum_samples(sum), &sample)) == 1)
		end += (size_t)snprintf(text + end, sizeof(text) - end, "%d@%d ", (int)sample.pid,
					(int)sample.time_ns);
	return text;
}

static const char in_order[] = "1@1 1@2 2@5 0@10 2@15 0@20 1@22 1@23 0@30 2@35 0@40 2@45 ";

static void samples_come_in_the_order_of_their_shifted_times(void **state)
{
	static const uint64_t begins[][PARTS] = { { 0, 0, 0 }, { 10, 1, 105 }, { 3, 1, 104 }, { 0, 1, 105 } };
	int end;

	(void)state;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		struct sum *sum = begin(begins[i]);

		for (int round = 0; round < 2; round++) {
			assert_string_equal(all_of(sum, &end), in_order);
			assert_int_equal(end, 0);
			assert_int_equal(sum_samples(sum)->next(sum_samples(sum), &(struct sample){ 0 }), 0);
			assert_int_equal(sum_samples(sum)->rewind(sum_samples(sum)), 0);
		}
		sum_free(sum);
	}
	sum_free(NULL);
}

/* Hundreds of recordings need not all be open at once. */
static void no_part_is_read_before_its_time(void **state)
{
	struct sum *sum = begin((const uint64_t[]){ 10, 1, 105 });
	struct sample sample;

	(void)state;
	assert_int_equal(sum_samples(sum)->next(sum_samples(sum), &sample), 1);
	assert_int_equal(sample.time_ns, 1);
	assert_int_equal(sources[1].next, 1);
	assert_int_equal(sources[0].next, 0);
	assert_int_equal(sources[2].next, 0);
	sum_samples(sum)->next(sum_samples(sum), &sample);
	assert_int_equal(sources[2].next, 0);
	sum_samples(sum)->next(sum_samples(sum), &sample);
	assert_int_equal(sources[2].next, 1);
	assert_int_equal(sources[0].next, 0);
	sum_free(sum);
}

static void stacks_of_different_parts_have_different_numbers(void **state)
{
	struct sum *sum = begin((const uint64_t[]){ 10, 1, 105 });
	uint64_t seen[PARTS * 4] = { 0 };
	struct sample sample;
	size_t count = 0;

	(void)state;
	while (sum_samples(sum)->next(sum_samples(sum), &sample) == 1) {
		bool has_number = sample.time_ns != 10 && sample.time_ns != 1 && sample.time_ns != 5;

		assert_int_equal(sample.stack != 0, has_number);
		for (size_t i = 0; i < count && has_number; i++)
			assert_int_not_equal(seen[i], sample.stack);
		if (has_number)
			seen[count++] = sample.stack;
	}
	assert_int_equal(count, 9);
	sum_free(sum);
}

static int fails_to_rewind(struct sample_source *source)
{
	(void)source;
	return -7;
}

static void errors_are_passed_on(void **state)
{
	struct sum *sum = begin((const uint64_t[]){ 10, 1, 105 });
	int end;

	(void)state;
	sources[0].count = 2;
	sources[0].end = -5;
	assert_string_equal(all_of(sum, &end), "1@1 1@2 2@5 0@10 2@15 0@20 ");
	assert_int_equal(end, -5);
	sources[2].source.rewind = fails_to_rewind;
	assert_int_equal(sum_samples(sum)->rewind(sum_samples(sum)), -7);
	sum_free(sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_come_in_the_order_of_their_shifted_times),
		cmocka_unit_test(no_part_is_read_before_its_time),
		cmocka_unit_test(stacks_of_different_parts_have_different_numbers),
		cmocka_unit_test(errors_are_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
