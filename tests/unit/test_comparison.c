/* SPDX-License-Identifier: MIT */
/* What counts as a change between two recordings, and what as noise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/views/comparison.h"
#include "tests/unit/made_up_source.h"

enum { SAMPLES = 6400, MS = 1000 * 1000 };

static const struct function heavy = {
	.kind = FRAME_LUA, .name = "heavy", .file = "test.lua", .firstline = 5
};
static const struct function other = {
	.kind = FRAME_LUA, .name = "other", .file = "test.lua", .firstline = 9
};
static const struct frame in_heavy = { .function = &heavy }, in_other = { .function = &other };

/* Of each run of samples, the first are in heavy. */
static void fill(struct sample *samples, size_t run, size_t in_run)
{
	for (size_t i = 0; i < SAMPLES; i++)
		samples[i] = (struct sample){
			.time_ns = i * MS,
			.cpu_ns = MS,
			.frames = i % run < in_run ? &in_heavy : &in_other,
			.frame_count = 1,
		};
}

/* The line of a function in the comparison of two recordings. */
static bool is_marked(const struct sample *before, const struct sample *after, const char *function)
{
	struct made_up_source sources[] = { made_up_source(before, SAMPLES), made_up_source(after, SAMPLES) };
	const struct session session = { 0 };
	const struct figures figures = { .samples = SAMPLES };
	const struct side sides[] = {
		{ "before", &sources[0].source, &session, &figures },
		{ "after", &sources[1].source, &session, &figures },
	};
	const struct view view = { 0 };
	char *text = NULL, *line;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	bool marked;

	assert_non_null(out);
	assert_int_equal(comparison_write(out, &sides[0], &sides[1], &view), 0);
	fclose(out);
	line = strstr(text, function);
	assert_non_null(line);
	while (line > text && line[-1] != '\n')
		line--;
	marked = memchr(line, '*', strcspn(line, "\n")) != NULL;
	free(text);
	return marked;
}

static struct sample before[SAMPLES], after[SAMPLES];

static void change_of_a_steady_program_is_one(void **state)
{
	(void)state;
	fill(before, 100, 30);
	fill(after, 100, 34);
	assert_true(is_marked(before, after, "heavy"));
}

static void same_program_has_not_changed(void **state)
{
	(void)state;
	fill(before, 100, 30);
	fill(after, 100, 30);
	assert_false(is_marked(before, after, "heavy"));
}

/* Ten phases of a function: one more or less in a recording is chance, whatever the number of samples. */
static void phases_that_chance_may_add_are_no_change(void **state)
{
	(void)state;
	fill(before, 640, 192);
	fill(after, 640, 218);
	assert_false(is_marked(before, after, "heavy"));
}

/* The same share, and the same change of it, in each moment. */
static void change_that_few_samples_show_is_none(void **state)
{
	(void)state;
	fill(before, 100, 30);
	fill(after, 100, 31);
	assert_false(is_marked(before, after, "heavy"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(change_of_a_steady_program_is_one),
		cmocka_unit_test(same_program_has_not_changed),
		cmocka_unit_test(phases_that_chance_may_add_are_no_change),
		cmocka_unit_test(change_that_few_samples_show_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
