/* SPDX-License-Identifier: MIT */
/* What counts as a change between two recordings, and what as noise. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/views/comparison.h"
#include "tests/unit/kept_text.h"
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

/* Two recordings of so many samples each, which begin anew after SAMPLES of them. */
struct pair {
	struct made_up_source sources[2];
	struct session sessions[2];
	struct figures figures;
	struct side sides[2];
};

static void make_pair(struct pair *pair, const struct sample *before, const struct sample *after,
		      size_t count)
{
	*pair = (struct pair){
		.sources = { made_up_source(before, SAMPLES), made_up_source(after, SAMPLES) },
		.figures = { .samples = count },
	};
	for (size_t i = 0; i < 2; i++) {
		pair->sources[i].count = count;
		pair->sides[i] = (struct side){ i ? "after" : "be\nfore", &pair->sources[i].source,
						&pair->sessions[i], &pair->figures };
	}
}

static char *compared(const struct pair *pair, const struct view *view)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	assert_int_equal(comparison_write(out, &pair->sides[0], &pair->sides[1], view), 0);
	fclose(out);
	return text;
}

/* Has the line of a function a mark in the comparison of two recordings? */
static bool is_marked_of(const struct sample *before, const struct sample *after, size_t count,
			 const char *function)
{
	struct pair pair;
	char *text, *line;
	bool marked;

	make_pair(&pair, before, after, count);
	text = compared(&pair, &(struct view){ 0 });
	line = strstr(text, function);
	assert_non_null(line);
	while (line > text && line[-1] != '\n')
		line--;
	marked = memchr(line, '*', strcspn(line, "\n")) != NULL;
	free(text);
	return marked;
}

static bool is_marked(const struct sample *before, const struct sample *after, const char *function)
{
	return is_marked_of(before, after, SAMPLES, function);
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

/* Of 100 samples a second. */
static void a_recording_of_the_time_that_is_told_shows_the_change(void **state)
{
	struct pair pair;
	char *text, *told;
	double change;
	size_t seconds;

	(void)state;
	fill(before, 100, 30);
	fill(after, 100, 31);
	make_pair(&pair, before, after, SAMPLES);
	pair.sessions[0].duration_ns = UINT64_C(1000) * SAMPLES / 100 * MS;
	pair.sessions[1].duration_ns = pair.sessions[0].duration_ns + 1; /* the shorter one counts */
	text = compared(&pair, &(struct view){ 0 });
	told = strstr(text, "A change of ");
	assert_non_null(told);
	assert_int_equal(
		sscanf(told, "A change of %lf, the largest of these, would show in recordings of %zu s each.",
		       &change, &seconds),
		2);
	assert_true(change > 0.99 && change < 1.01);
	assert_true(is_marked_of(before, after, 100 * seconds, "heavy"));
	assert_false(is_marked_of(before, after, 95 * seconds, "heavy"));
	free(text);
	/* Without their lengths, nothing is told. */
	pair.sessions[1].duration_ns = 0;
	text = compared(&pair, &(struct view){ 0 });
	assert_null(strstr(text, "would show"));
	free(text);
}

/* heavy becomes lighter, and added and other take its time; little of the others changes. */
static void fill_many(void)
{
	static const struct function steady = { .kind = FRAME_LUA, .name = "steady" };
	static const struct function small = { .kind = FRAME_LUA, .name = "small" };
	static const struct function added = { .kind = FRAME_BUILTIN, .name = "added" };
	static const struct frame stacks[][2] = {
		{ { .function = &steady }, { .function = &other } },
		{ { .function = &small }, { .function = &other } },
		{ { .function = &added }, { .function = &heavy } },
	};
	struct sample in_other_alone;

	fill(before, 200, 80);
	fill(after, 200, 40);
	in_other_alone = after[198];
	for (size_t i = 0; i < SAMPLES; i++) {
		struct sample *samples[] = { &before[i], &after[i] };

		for (size_t j = 0; j < 2; j++) {
			samples[j]->frame_count = i % 200 < 80 ? 1 : 2;
			if (i % 200 >= 80)
				samples[j]->frames = stacks[i % 200 == 199];
		}
		if (i % 200 >= 40 && i % 200 < 55) {
			after[i].frames = stacks[2];
			after[i].frame_count = 2;
		}
		if (i % 200 == 198)
			after[i] = in_other_alone;
	}
}

static void what_has_changed_stands_first_the_largest_change_on_top(void **state)
{
	const struct view views[] = { { 0 }, { .min_percent = 0.6 } };
	struct pair pair;
	struct kept_text kept;

	(void)state;
	fill_many();
	make_pair(&pair, before, after, SAMPLES);
	pair.sessions[0].duration_ns = pair.sessions[1].duration_ns = UINT64_C(2) * SAMPLES * MS;
	kept_text_begin(&kept);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(comparison_write(kept.out, &pair.sides[0], &pair.sides[1], &views[i]), 0);
	kept_text_check(&kept, "comparison-changed.txt");
}

enum { CROWD = 10 };

/*
 * In each moment, heavy is a bit heavier; of many others some become twice as heavy and the rest go, or all
 * stay.
 */
static void fill_crowd(bool changes)
{
	static struct function crowd[CROWD];
	static struct frame in_crowd[CROWD];

	for (size_t i = 0; i < CROWD; i++) {
		crowd[i] = (struct function){ .kind = FRAME_LUA, .name = "one of many", .file = "crowd.lua" };
		in_crowd[i] = (struct frame){ .function = &crowd[i] };
	}
	fill(before, 1, 1);
	fill(after, 1, 1);
	for (size_t i = 0; i < SAMPLES; i++) {
		const size_t at = i * 167 % 400, one = at % CROWD;

		if (at >= 120)
			before[i].frames = at < 200 ? &in_other : &in_crowd[one];
		if (at >= 129)
			after[i].frames = at < 200 ? &in_other : &in_crowd[changes ? one / 2 * 2 : one];
	}
}

/* Of many functions some differ by chance: what has surely changed does not. */
static void a_change_is_judged_beside_those_that_may_be_chance(void **state)
{
	(void)state;
	fill_crowd(false);
	assert_false(is_marked(before, after, "heavy"));
	fill_crowd(true);
	assert_true(is_marked(before, after, "heavy"));
}

/*
 * Of 100 samples in each moment: splits has 30, then 10 and 15 in part, which it calls; even has 10, then
 * 16; uneven itself has none, then 5. The others are of leaf, which uneven calls at times, and less later on.
 */
static void fill_own_and_total(void)
{
	static const struct function splits = { .kind = FRAME_LUA, .name = "splits" };
	static const struct function part = { .kind = FRAME_LUA, .name = "part" };
	static const struct function even = { .kind = FRAME_LUA, .name = "even" };
	static const struct function uneven = { .kind = FRAME_LUA, .name = "uneven" };
	static const struct function leaf = { .kind = FRAME_LUA, .name = "leaf" };
	static const struct frame in_part[] = { { .function = &part }, { .function = &splits } };
	static const struct frame in_leaf[] = { { .function = &leaf }, { .function = &uneven } };
	static const struct frame in_even = { .function = &even };

	fill(before, 1, 1);
	fill(after, 1, 1);
	for (size_t i = 0; i < SAMPLES; i++) {
		const size_t at = i * 37 % 100;

		before[i].frames = at < 60 ? in_leaf : at < 70 ? &in_even : &in_part[1];
		before[i].frame_count = at < 60 && i % 1280 < 512 ? 2 : 1;
		after[i].frames = at < 54   ? in_leaf
				  : at < 59 ? &in_leaf[1]
				  : at < 75 ? &in_even
				  : at < 90 ? in_part
					    : &in_part[1];
		after[i].frame_count = (at < 54 && i % 1280 < 288) || (at >= 75 && at < 90) ? 2 : 1;
	}
}

/*
 * The change in a row that is none for sure says nothing of its size; of two that are, the larger one counts.
 */
static void rows_are_sorted_by_their_largest_sure_change(void **state)
{
	static const char *const names[] = { " splits", " part", " even", " uneven" };
	struct pair pair;
	char *text;
	const char *row[4], *end;

	(void)state;
	fill_own_and_total();
	make_pair(&pair, before, after, SAMPLES);
	text = compared(&pair, &(struct view){ 0 });
	for (size_t i = 0; i < 4; i++) {
		row[i] = strstr(text, names[i]);
		assert_non_null(row[i]);
		assert_true(i == 0 || row[i] > row[i - 1]);
	}
	/* The total of uneven has changed by more than that of even, but not for sure. */
	end = row[3];
	while (row[3][-1] != '\n')
		row[3]--;
	assert_ptr_equal(memchr(row[3], '*', (size_t)(end - row[3])), strrchr(row[3], '*'));
	assert_non_null(strstr(row[3], " -6.8"));
	free(text);
}

static void where_all_has_changed_nothing_else_is_listed(void **state)
{
	struct pair pair;
	char *text;

	(void)state;
	fill(before, 100, 30);
	fill(after, 100, 60);
	make_pair(&pair, before, after, SAMPLES);
	text = compared(&pair, &(struct view){ 0 });
	assert_non_null(strstr(text, "\nChanged ("));
	assert_null(strstr(text, "Not known to have changed"));
	free(text);
}

static void functions_that_the_table_marks_are_told(void **state)
{
	struct changed changed = { 0 };
	struct pair pair;

	(void)state;
	fill_many();
	make_pair(&pair, before, after, SAMPLES);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
			comparison_changed(&pair.sides[0], &pair.sides[1], &(struct view){ 0 }, &changed), 0);
		assert_int_equal(HASH_COUNT(changed.functions), 3);
		assert_true(changed_has(&changed, &heavy));
		assert_true(changed_has(&changed, &other));
		assert_false(changed_has(&changed, before[100].frames[0].function));
		assert_true(changed_has(&changed, after[50].frames[0].function));
	}
	changed_clear(&changed);
	assert_false(changed_has(&changed, &heavy));
}

/*
 * In the long recording, each hundredth sample is one of heavy, and weighs as much as eleven others: it has a
 * tenth. Of so few and such samples, the short one may well have met none.
 */
static void few_heavy_samples_that_a_short_recording_may_miss_are_no_change(void **state)
{
	struct figures short_figures = { .samples = 100 };
	struct changed changed = { 0 };
	struct pair pair;

	(void)state;
	for (int heavy_weight = 1; heavy_weight <= 11; heavy_weight += 10) {
		/* Light ones, as many as have that tenth, are met for sure. */
		fill(before, 1, 0);
		fill(after, 110, heavy_weight == 1 ? 11 : 1);
		for (size_t i = 0; i < SAMPLES; i++)
			after[i].cpu_ns *= after[i].frames == &in_heavy ? heavy_weight : 1;
		make_pair(&pair, before, after, SAMPLES);
		pair.sources[0].count = short_figures.samples;
		pair.sides[0].figures = &short_figures;
		for (size_t i = 0; i < 2; i++) {
			const struct side *sides[] = { &pair.sides[i], &pair.sides[1 - i] };

			assert_int_equal(
				comparison_changed(sides[0], sides[1], &(struct view){ 0 }, &changed), 0);
			assert_int_equal(HASH_COUNT(changed.functions), heavy_weight == 1 ? 2 : 0);
			changed_clear(&changed);
		}
	}
}

static void errors_of_either_side_are_passed_on(void **state)
{
	struct changed changed = { 0 };
	struct pair pair;

	(void)state;
	fill_many();
	for (size_t i = 0; i < 2; i++) {
		make_pair(&pair, before, after, SAMPLES);
		pair.sources[i].end = -EBADMSG;
		assert_int_equal(
			comparison_write(stdout, &pair.sides[0], &pair.sides[1], &(struct view){ 0 }),
			-EBADMSG);
		assert_int_equal(
			comparison_changed(&pair.sides[0], &pair.sides[1], &(struct view){ 0 }, &changed),
			-EBADMSG);
		assert_null(changed.functions);
	}
}

static void nothing_on_one_side_is_no_change(void **state)
{
	struct pair pair;
	char *text;

	(void)state;
	fill(before, 100, 30);
	for (size_t i = 0; i < 2; i++) {
		make_pair(&pair, before, before, SAMPLES);
		pair.sources[i].count = 0;
		text = compared(&pair, &(struct view){ 0 });
		assert_non_null(strstr(text, "\nNothing has changed by more than noise may explain.\n"));
		assert_non_null(strstr(text, i ? "30.00    0.00" : "0.00   30.00"));
		assert_null(strstr(text, "nan"));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(change_of_a_steady_program_is_one),
		cmocka_unit_test(same_program_has_not_changed),
		cmocka_unit_test(phases_that_chance_may_add_are_no_change),
		cmocka_unit_test(change_that_few_samples_show_is_none),
		cmocka_unit_test(a_recording_of_the_time_that_is_told_shows_the_change),
		cmocka_unit_test(what_has_changed_stands_first_the_largest_change_on_top),
		cmocka_unit_test(a_change_is_judged_beside_those_that_may_be_chance),
		cmocka_unit_test(rows_are_sorted_by_their_largest_sure_change),
		cmocka_unit_test(where_all_has_changed_nothing_else_is_listed),
		cmocka_unit_test(functions_that_the_table_marks_are_told),
		cmocka_unit_test(few_heavy_samples_that_a_short_recording_may_miss_are_no_change),
		cmocka_unit_test(errors_of_either_side_are_passed_on),
		cmocka_unit_test(nothing_on_one_side_is_no_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
