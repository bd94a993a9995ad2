/* SPDX-License-Identifier: MIT */
/* Threads in time order, in the file format of speedscope. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "output/formats/speedscope.h"
#include "tests/unit/made_up_source.h"

#define MS UINT64_C(1000000)

enum { START_MS = 7000, TEXT_SIZE = 1024 };

static const struct function works = {
	.kind = FRAME_LUA, .name = "works", .file = "@test.lua", .firstline = 5
};
static const struct frame in_works[] = { { .function = &works, .line = 6 } };

/* A thread ran and was looked at. Waiting for a CPU before that is a sample of its own, at the same time. */
#define SAMPLE(thread, at_ms, length_ms, state) \
	{ \
		.time_ns = (START_MS + (at_ms)) * MS, .pid = 1, .tid = (thread), .thread_state = (state), \
		.wall_ns = ((length_ms)*MS), .frames = in_works, .frame_count = 1 \
	}
#define RAN(thread, at_ms, length_ms) SAMPLE(thread, at_ms, length_ms, THREAD_RUNNING)
#define WAITED(thread, at_ms, length_ms) SAMPLE(thread, at_ms, length_ms, THREAD_RUNNABLE)

static json_t *written(const struct sample *samples, size_t count)
{
	const struct session session = { .start_ns = START_MS * MS };
	const struct view view = { .weight = WEIGHT_WALL_TIME };
	struct made_up_source source = made_up_source(samples, count);
	json_t *document;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(speedscope_write(out, &source.source, &session, NULL, &view), 0);
	assert_int_equal(fclose(out), 0);
	document = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(document);
	return document;
}

/*
 * A thread's stretches in ms, those without a stack in brackets, and where they end. Profile 0 is of all
 * threads.
 */
static void check_line(const struct sample *samples, size_t count, size_t thread, const char *wanted)
{
	json_t *document = written(samples, count);
	json_t *profile = json_array_get(json_object_get(document, "profiles"), thread);
	json_t *lengths = json_object_get(profile, "weights"), *stacks = json_object_get(profile, "samples");
	char text[TEXT_SIZE];
	size_t length = 0;

	assert_true(json_array_size(lengths) > 0);
	assert_int_equal(json_array_size(lengths), json_array_size(stacks));
	for (size_t i = 0; i < json_array_size(lengths); i++) {
		const unsigned long long ms = (unsigned long long)json_integer_value(
						      json_array_get(lengths, i)) /
					      MS;

		length += (size_t)snprintf(text + length, sizeof(text) - length,
					   json_array_size(json_array_get(stacks, i)) ? "%llu " : "(%llu) ",
					   ms);
		assert_true(length < sizeof(text));
	}
	snprintf(text + length, sizeof(text) - length, "to %llu",
		 (unsigned long long)json_integer_value(json_object_get(profile, "endValue")) / MS);
	assert_string_equal(text, wanted);
	json_decref(document);
}

#define CHECK_LINE(samples, thread, wanted) \
	check_line(samples, sizeof(samples) / sizeof((samples)[0]), thread, wanted)

static void a_sample_ends_when_it_was_taken(void **state)
{
	static const struct sample samples[] = { RAN(1, 10, 10), RAN(1, 20, 10), RAN(1, 50, 10) };

	(void)state;
	CHECK_LINE(samples, 1, "10 10 (20) 10 to 50");
}

/* Both end when the thread was looked at: together they stand for the time before. */
static void time_that_it_waited_for_a_cpu_lies_beside_what_it_ran(void **state)
{
	static const struct sample samples[] = { RAN(1, 10, 10),    RAN(1, 50, 5),    WAITED(1, 50, 35),
						 RAN(1, 80, 10),    WAITED(1, 80, 8), RAN(1, 100, 2),
						 WAITED(1, 100, 18) };

	(void)state;
	CHECK_LINE(samples, 1, "10 5 35 (12) 10 8 2 18 to 100");
}

static void the_first_look_may_have_both_too(void **state)
{
	static const struct sample samples[] = { RAN(1, 40, 10), WAITED(1, 40, 30), RAN(1, 50, 10) };

	(void)state;
	CHECK_LINE(samples, 1, "10 30 10 to 50");
}

/* The earliest of all threads is where the first look at one of them begins, with all that it had before. */
static void threads_begin_at_one_time(void **state)
{
	static const struct sample samples[] = { RAN(1, 40, 10), WAITED(1, 40, 30), RAN(2, 40, 5) };

	(void)state;
	CHECK_LINE(samples, 1, "10 30 to 40");
	CHECK_LINE(samples, 2, "(35) 5 to 40");
}

static void other_threads_are_looked_at_meanwhile(void **state)
{
	static const struct sample samples[] = { RAN(1, 20, 20),   RAN(2, 20, 5), WAITED(2, 20, 10),
						 RAN(2, 60, 5),    RAN(1, 60, 9), WAITED(2, 60, 25),
						 WAITED(1, 60, 31) };

	(void)state;
	CHECK_LINE(samples, 1, "20 9 31 to 60");
	CHECK_LINE(samples, 2, "(5) 5 10 (10) 5 25 to 60");
}

/* Waits of many requests at once: they cannot all lie in the time since the look before. */
static void what_is_longer_than_the_time_since_the_last_look_begins_there(void **state)
{
	static const struct sample samples[] = { WAITED(1, 10, 10), WAITED(1, 10, 10), WAITED(1, 20, 10),
						 WAITED(1, 20, 10), RAN(1, 70, 5) };

	(void)state;
	CHECK_LINE(samples, 1, "10 10 10 10 (25) 5 to 70");
}

static void any_number_of_samples_may_have_one_time(void **state)
{
	enum { COUNT = 1000 };
	struct sample samples[COUNT];
	json_t *document, *profile;

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		samples[i] = (struct sample)WAITED(1, 10, 1);
	document = written(samples, COUNT);
	profile = json_array_get(json_object_get(document, "profiles"), 1);
	assert_int_equal(json_array_size(json_object_get(profile, "weights")), COUNT);
	assert_int_equal(json_integer_value(json_object_get(profile, "endValue")), COUNT * MS);
	json_decref(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_ends_when_it_was_taken),
		cmocka_unit_test(time_that_it_waited_for_a_cpu_lies_beside_what_it_ran),
		cmocka_unit_test(the_first_look_may_have_both_too),
		cmocka_unit_test(threads_begin_at_one_time),
		cmocka_unit_test(other_threads_are_looked_at_meanwhile),
		cmocka_unit_test(what_is_longer_than_the_time_since_the_last_look_begins_there),
		cmocka_unit_test(any_number_of_samples_may_have_one_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
