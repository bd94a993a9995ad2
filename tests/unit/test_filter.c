/* SPDX-License-Identifier: MIT */
/* Which samples pass a filter. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "output/views/filter.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_source.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

static const struct function heavy = {
	.kind = FRAME_LUA, .name = "heavy", .file = "test.lua", .firstline = 5
};
static const struct frame frame = { .function = &heavy };

/* The first and the third are of one request, which has become old by then; the last is of none. */
static const struct sample_request requests[5] = {
	{ .route = "/users/*", .method = "GET", .host = "a", .connection = 1, .number = 1, .age_ns = 10 },
	{ .route = "/users/*", .method = "GET", .host = "b", .connection = 1, .number = 2, .age_ns = 20 },
	{ .route = "/users/*", .method = "GET", .host = "a", .connection = 1, .number = 1, .age_ns = 90 },
	{ .route = "/orders", .method = "POST", .connection = 2, .number = 1, .age_ns = 30 },
};

/* How it ended: 0 or the error; and whether an allocation has failed, the one behind so many. */
static int last_result;
static bool has_failed;
static size_t allocations_that_succeed = SIZE_MAX - 1;

/* The times of the samples that pass, one digit each. */
static unsigned int passed(const struct filter_options *options)
{
	struct sample samples[5];
	struct functions *functions = functions_new();
	struct made_up_source source = made_up_source(samples, 5);
	struct filter *filter = filter_new(&source.source, functions, options);
	struct sample_source *filtered = filter_samples(filter);
	struct sample sample;
	unsigned int digits = 0;

	assert_non_null(functions);
	assert_non_null(filter);
	for (size_t i = 0; i < 5; i++)
		samples[i] = (struct sample){ .time_ns = i + 1,
					      .pid = i == 2 ? 10 : 10 * (pid_t)(i + 1), /* as the first */
					      .tid = 10 * (pid_t)(i + 1),
					      .cpu_ns = 1,
					      .request = requests[i],
					      .frames = &frame,
					      .frame_count = 1 };
	allocation_fails_after(allocations_that_succeed);
	while ((last_result = filtered->next(filtered, &sample)) == 1)
		digits = digits * 10 + (unsigned int)sample.time_ns;
	has_failed = allocation_failed();
	filter_free(filter);
	functions_free(functions);
	return digits;
}

static void a_range_of_time_has_its_beginning_and_not_its_end(void **state)
{
	(void)state;
	assert_int_equal(passed(&(struct filter_options){ 0 }), 12345);
	assert_int_equal(passed(&(struct filter_options){ .since_ns = 3 }), 345);
	assert_int_equal(passed(&(struct filter_options){ .until_ns = 3 }), 12);
	assert_int_equal(passed(&(struct filter_options){ .since_ns = 2, .until_ns = 4 }), 23);
	assert_int_equal(passed(&(struct filter_options){ .since_ns = 3, .until_ns = 3 }), 0);
}

static void processes_and_threads_are_those_asked_for(void **state)
{
	const pid_t some[] = { 20, 50 }, one[] = { 50 };

	(void)state;
	assert_int_equal(passed(&(struct filter_options){ .pids = some, .pid_count = 2 }), 25);
	assert_int_equal(passed(&(struct filter_options){ .tids = one, .tid_count = 1 }), 5);
	assert_int_equal(
		passed(&(struct filter_options){ .pids = some, .pid_count = 2, .tids = one, .tid_count = 1 }),
		5);
}

static void all_samples_of_slow_requests_pass(void **state)
{
	(void)state;
	assert_int_equal(passed(&(struct filter_options){ .slower_than_ns = 1 }), 1234);
	assert_int_equal(passed(&(struct filter_options){ .slower_than_ns = 30 }), 134);
	assert_int_equal(passed(&(struct filter_options){ .slower_than_ns = 31 }), 13);
	assert_int_equal(passed(&(struct filter_options){ .slower_than_ns = 91 }), 0);
}

/* Of three requests, of 90, 30 and 20 ns: at least one, and those as slow as the last of them. */
static void all_samples_of_the_slowest_requests_pass(void **state)
{
	const pid_t second = 20;
	regex_t pattern;

	(void)state;
	assert_int_equal(passed(&(struct filter_options){ .slower_than_ppm = 990000 }), 13);
	assert_int_equal(passed(&(struct filter_options){ .slower_than_ppm = 666667 }), 13);
	assert_int_equal(passed(&(struct filter_options){ .slower_than_ppm = 666666 }), 134);
	assert_int_equal(passed(&(struct filter_options){ .slower_than_ppm = 1 }), 1234);
	assert_int_equal(passed(&(struct filter_options){ .slower_than_ppm = 500000, .is_faster = true }), 2);
	/* Others than those asked for do not count. */
	assert_int_equal(
		passed(&(struct filter_options){ .slower_than_ppm = 500000, .since_ns = 2, .until_ns = 3 }),
		2);
	assert_int_equal(passed(&(struct filter_options){
				 .slower_than_ppm = 500000, .pids = &second, .pid_count = 1 }),
			 2);
	assert_int_equal(regcomp(&pattern, "/orders|b/users", REG_EXTENDED | REG_NOSUB), 0);
	assert_int_equal(
		passed(&(struct filter_options){ .slower_than_ppm = 500000, .include_request = &pattern }),
		4);
	regfree(&pattern);
}

static void requests_are_those_that_match(void **state)
{
	regex_t pattern;

	(void)state;
	assert_int_equal(regcomp(&pattern, "^GET a/users/", REG_EXTENDED | REG_NOSUB), 0);
	assert_int_equal(passed(&(struct filter_options){ .include_request = &pattern }), 13);
	regfree(&pattern);
	assert_int_equal(regcomp(&pattern, "^POST -/orders$", REG_EXTENDED | REG_NOSUB), 0);
	assert_int_equal(passed(&(struct filter_options){ .include_request = &pattern }), 4);
	regfree(&pattern);
}

static void a_request_is_known_by_its_numbers(void **state)
{
	(void)state;
	assert_int_equal(passed(&(struct filter_options){ .connection = 1, .number = 1 }), 13);
	assert_int_equal(passed(&(struct filter_options){ .connection = 1, .number = 2 }), 2);
	assert_int_equal(passed(&(struct filter_options){ .connection = 2, .number = 1 }), 4);
	assert_int_equal(passed(&(struct filter_options){ .connection = 2, .number = 2 }), 0);
}

/* Of whichever kind the filter is, what passes before is right, and the error is told. */
static void where_memory_is_short_that_is_told(void **state)
{
	static const struct filter_options options[] = {
		{ .slower_than_ns = 30 }, { .slower_than_ppm = 666667 }, { .group = GROUP_PID },
		{ .without_line = true }, { .merge_recursion = true },   { .time = TIME_ON_CPU },
	};
	size_t failures = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		const unsigned int expected = passed(&options[i]);
		unsigned int digits;

		for (allocations_that_succeed = 0;; allocations_that_succeed++) {
			digits = passed(&options[i]);
			if (!has_failed)
				break;
			failures++;
			assert_true(last_result == 0 || last_result == -ENOMEM);
			if (last_result == 0)
				assert_int_equal(digits, expected);
			else
				assert_in_range(digits, 0, expected / 10);
		}
		assert_int_equal(digits, expected);
		assert_int_equal(last_result, 0);
		allocations_that_succeed = SIZE_MAX - 1;
	}
	assert_in_range(failures, 12, SIZE_MAX);
	allocation_fails_after(0);
	assert_null(filter_new(NULL, NULL, &options[0]));
	assert_true(allocation_failed());
	filter_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_of_time_has_its_beginning_and_not_its_end),
		cmocka_unit_test(processes_and_threads_are_those_asked_for),
		cmocka_unit_test(all_samples_of_slow_requests_pass),
		cmocka_unit_test(all_samples_of_the_slowest_requests_pass),
		cmocka_unit_test(a_request_is_known_by_its_numbers),
		cmocka_unit_test(where_memory_is_short_that_is_told),
		cmocka_unit_test(requests_are_those_that_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
