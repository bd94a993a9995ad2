/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/sample/figures.h"

static struct figures example(void)
{
	struct figures figures = {
		.samples = 3000,
		.missed_ticks = 4,
		.undisturbed = 6,
		.skid = 45,
		.sampled_cpu_ns = 29800000000,
		.lost_cpu_ns = 250000,
		.duration_ns = 30000000000,
		.self_cpu_ns = 310000000,
		.target_cpu_ns = 29800000000,
		.alloc_estimated = 1300000,
		.alloc_least = 20000,
		.alloc_all = 1500000,
		.alloc_large = 7000,
		.rate_asked_hz = 100,
		.rate_reached_hz = 99.5,
		.frames = { [CERTAINTY_EXACT] = 900, [CERTAINTY_NEAREST] = 90, [CERTAINTY_FUNCTION] = 10 },
	};

	figures.lost[LOST_BROKEN_CHAIN] = 9;
	figures.lost[LOST_TOO_DEEP] = 3;
	for (int i = 0; i < 100; i++)
		histogram_add(&figures.pause_ns, 8000);
	histogram_add(&figures.pause_ns, 140000);
	return figures;
}

static double number(const json_t *object, const char *outer, const char *inner)
{
	const json_t *value = json_object_get(object, outer);

	if (inner)
		value = json_object_get(value, inner);
	assert_true(json_is_number(value));
	return json_number_value(value);
}

static void the_json_has_units_in_its_names(void **state)
{
	struct figures figures = example();
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	json_t *object;

	(void)state;
	assert_non_null(out);
	assert_int_equal(figures_write_json(out, &figures, NULL), 0);
	fclose(out);
	object = json_loads(text, 0, NULL);
	assert_non_null(object);
	assert_true(number(object, "samples", NULL) == 3000);
	assert_true(number(object, "missed_ticks", NULL) == 4);
	assert_true(number(object, "undisturbed", NULL) == 6);
	assert_true(number(object, "skid", NULL) == 45);
	assert_true(number(object, "lost", "frame chain broken") == 9);
	assert_true(number(object, "lost", "target ended") == 0);
	assert_true(number(object, "lost_cpu_ms", NULL) == 0.25);
	assert_int_equal(json_object_size(json_object_get(object, "lost")), LOST_COUNT);
	assert_true(number(object, "pause_us", "p50") > 7.7 && number(object, "pause_us", "p50") < 8.3);
	assert_true(number(object, "pause_us", "p90") < 8.3);
	assert_true(number(object, "pause_us", "p99") < 8.3);
	assert_true(number(object, "pause_us", "max") == 140);
	assert_true(number(object, "duration_ms", NULL) == 30000);
	assert_true(number(object, "self_cpu_ms", NULL) == 310);
	assert_true(number(object, "target_cpu_ms", NULL) == 29800);
	assert_true(number(object, "alloc_bytes", "estimated") == 1300000);
	assert_true(number(object, "alloc_bytes", "least") == 20000);
	assert_true(number(object, "alloc_bytes", "large") == 7000);
	assert_true(number(object, "rate_hz", "asked") == 100);
	assert_true(number(object, "rate_hz", "reached") == 99.5);
	assert_true(number(object, "frames", "exact") == 900);
	assert_true(number(object, "frames", "nearest") == 90);
	assert_true(number(object, "frames", "function") == 10);
	json_decref(object);
	free(text);
}

static void no_cpu_time_is_told_of_samples_that_have_none(void **state)
{
	struct figures figures = example();
	json_t *object;

	(void)state;
	figures.sampled_cpu_ns = figures.lost_cpu_ns = 0;
	figures.lost_cpu_unknown = true;
	object = figures_json(&figures);
	assert_non_null(object);
	assert_true(json_is_null(json_object_get(object, "lost_cpu_ms")));
	json_decref(object);
}

static char *printed(const struct figures *figures)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	figures_print(out, figures);
	fclose(out);
	return text;
}

static void people_read_a_few_lines(void **state)
{
	struct figures figures = example();
	char *text = printed(&figures);

	(void)state;
	assert_non_null(
		strstr(text, "samples  3000 in 30.0 s, 99.5 Hz reached of 100 asked, 4 ticks missed\n"));
	assert_non_null(strstr(text, "lost     12 (0.40 %): frame chain broken 9, stack too deep 3\n"));
	assert_non_null(strstr(text, "\nbytes    "));
	assert_non_null(strstr(
		text, "\ncalls    6 samples without a stop, which might have changed a system call\n"));
	assert_non_null(strstr(text, "\nskid     45 samples (1.50 %) at the end of a system call, "));
	assert_non_null(strstr(text, "max 140.0 us\n"));
	assert_non_null(strstr(text, "lines    90.0 % exact, 9.0 % nearest known, 1.0 % function only\n"));
	assert_non_null(strstr(text, "cpu      ljspy 310 ms, target 29800 ms (1.04 %)\n"));
	free(text);
}

/* Zeros are not worth a line. */
static void people_read_what_was_dropped_and_how_long_nothing_was_sampled(void **state)
{
	static const struct {
		uint64_t dropped, away_ns;
		const char *text; /* NULL: nothing is told */
	} cases[] = {
		{ 0, 0, NULL },
		{ 7, 0,
		  "\napart    7 samples dropped, as writing was slower or failed, or they were too large\n" },
		{ 0, 2500000000,
		  "\napart    away for 2.5 s, as ljspy was stopped or memory of a target kept it waiting\n" },
		{ 7, 2500000000,
		  "\napart    7 samples dropped, as writing was slower or failed, or they were too large; away for 2.5 s, as ljspy was" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct figures figures = { .dropped = cases[i].dropped, .away_ns = cases[i].away_ns };
		char *text = printed(&figures);

		if (cases[i].text)
			assert_non_null(strstr(text, cases[i].text));
		else
			assert_null(strstr(text, "apart"));
		free(text);
	}
}

static void the_document_is_whole_lines_with_what_was_added(void **state)
{
	const struct figures figures = example();
	json_t *members = json_pack("{s:i}", "processes", 3), *object;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size), *full = fopen("/dev/full", "we");

	(void)state;
	assert_non_null(out);
	assert_non_null(full);
	assert_non_null(members);
	assert_int_equal(figures_write_json(out, &figures, members), 0);
	fclose(out);
	assert_true(size > 2);
	assert_string_equal(text + size - 2, "}\n");
	object = json_loads(text, 0, NULL);
	assert_true(number(object, "processes", NULL) == 3);
	assert_true(number(object, "samples", NULL) == 3000);
	json_decref(object);
	free(text);
	setvbuf(full, NULL, _IONBF, 0);
	assert_int_equal(figures_write_json(full, &figures, members), -EIO);
	fclose(full);
	json_decref(members);
}

static void a_part_of_the_samples_has_no_share_of_what_counts_for_all(void **state)
{
	struct figures figures = example();
	char *text;

	(void)state;
	figures.is_part = true;
	figures.samples = 3;
	text = printed(&figures);
	assert_non_null(
		strstr(text, "\nskid     45 samples of all that was recorded at the end of a system call, "));
	free(text);
	/* The part may have all of them: so they are told, however few. */
	figures.samples = 3000;
	figures.skid = 1;
	text = printed(&figures);
	assert_non_null(strstr(text, "\nskid     1 samples of all that was recorded "));
	free(text);
	figures.is_part = false;
	text = printed(&figures);
	assert_null(strstr(text, "skid"));
	free(text);
}

static void figures_of_nothing_are_zeros(void **state)
{
	struct figures figures = { 0 };
	char *text = printed(&figures);

	(void)state;
	assert_non_null(strstr(text, "samples  0 in 0.0 s"));
	assert_non_null(strstr(text, "lost     0 (0.00 %)\n"));
	assert_null(strstr(text, "\nbytes"));
	assert_null(strstr(text, "\ncalls"));
	assert_null(strstr(text, "skid"));
	assert_null(strstr(text, "pause"));
	assert_null(strstr(text, "nan"));
	free(text);
}

static void a_sum_has_the_figures_of_both(void **state)
{
	struct figures sum = example(), other = example();

	(void)state;
	sum.dropped = 2;
	other.dropped = 5;
	sum.away_ns = 20;
	other.away_ns = 50;
	sum.sampled_cpu_ns = 100;
	other.sampled_cpu_ns = 11;
	sum.lost_cpu_ns = 30;
	other.lost_cpu_ns = 2;
	other.rate_asked_hz = 250;
	other.target_cpu_unknown = true;
	other.lost_cpu_unknown = true;
	other.alloc_large_unknown = true;
	figures_add(&sum, &other);
	assert_int_equal(sum.samples, 6000);
	assert_int_equal(sum.lost[LOST_BROKEN_CHAIN], 18);
	assert_int_equal(sum.lost[LOST_TOO_DEEP], 6);
	assert_int_equal(figures_lost(&sum), 24);
	assert_int_equal(sum.sampled_cpu_ns, 111);
	assert_int_equal(sum.lost_cpu_ns, 32);
	assert_int_equal(sum.missed_ticks, 8);
	assert_int_equal(sum.dropped, 7);
	assert_int_equal(sum.away_ns, 70);
	assert_int_equal(sum.undisturbed, 12);
	assert_int_equal(sum.skid, 90);
	assert_int_equal(sum.pause_ns.count, 202);
	assert_int_equal(sum.duration_ns, 60000000000);
	assert_int_equal(sum.self_cpu_ns, 620000000);
	assert_int_equal(sum.target_cpu_ns, 59600000000);
	assert_int_equal(sum.alloc_estimated, 2600000);
	assert_int_equal(sum.alloc_least, 40000);
	assert_int_equal(sum.alloc_all, 3000000);
	assert_int_equal(sum.alloc_large, 14000);
	assert_true(sum.alloc_large_unknown);
	assert_true(sum.target_cpu_unknown);
	assert_true(sum.rate_asked_hz == 250);
	assert_true(sum.rate_reached_hz == 99.5);
	assert_int_equal(sum.frames[CERTAINTY_EXACT], 1800);
	assert_int_equal(sum.frames[CERTAINTY_NEAREST], 180);
	assert_int_equal(sum.frames[CERTAINTY_FUNCTION], 20);
	/* The higher of two rates stays, whichever comes first. */
	other.rate_asked_hz = 100;
	other.target_cpu_unknown = false;
	other.lost_cpu_unknown = false;
	figures_add(&sum, &other);
	assert_true(sum.rate_asked_hz == 250);
	assert_true(sum.target_cpu_unknown);
	assert_true(sum.lost_cpu_unknown);
}

/* A part of a run has samples of its own, and of the rest what was counted meanwhile. */
static void a_part_of_a_run_has_what_was_counted_meanwhile(void **state)
{
	struct figures before = example(), now = example(), part = { .samples = 7, .frames = { 8 } };

	(void)state;
	now.missed_ticks = 14;
	now.dropped = 2;
	now.away_ns = 30;
	now.undisturbed = 9;
	now.skid = 46;
	now.alloc_estimated = 1300005;
	now.alloc_least = 20006;
	now.alloc_all = 1500008;
	now.alloc_large = 7007;
	now.self_cpu_ns += 40;
	histogram_add(&now.pause_ns, 9);
	figures_count_since(&part, &now, &before);
	assert_int_equal(part.missed_ticks, 10);
	assert_int_equal(part.dropped, 2);
	assert_int_equal(part.away_ns, 30);
	assert_int_equal(part.undisturbed, 3);
	assert_int_equal(part.skid, 1);
	assert_int_equal(part.alloc_estimated, 5);
	assert_int_equal(part.alloc_least, 6);
	assert_int_equal(part.alloc_all, 8);
	assert_int_equal(part.alloc_large, 7);
	assert_int_equal(part.self_cpu_ns, 40);
	assert_int_equal(part.pause_ns.count, 1);
	assert_int_equal(part.pause_ns.max, 9);
	assert_int_equal(part.samples, 7);
	assert_int_equal(part.frames[0], 8);
	/* The CPU time of an earlier process of ljspy's may be missing. */
	before.self_cpu_ns = now.self_cpu_ns + 1;
	figures_count_since(&part, &now, &before);
	assert_int_equal(part.self_cpu_ns, 0);
}

static void the_rate_says_what_was_reached_unless_it_is_unknown(void **state)
{
	struct figures figures = { .samples = 500, .rate_asked_hz = 99.5 };
	char text[FIGURES_RATE_SIZE];

	(void)state;
	figures_set_rate(&figures, 4000000000);
	figures_rate(&figures, text);
	assert_string_equal(text, "125.0 Hz reached of 99.5 asked");
	figures.rate_reached_hz = 0.5;
	figures_rate(&figures, text);
	assert_string_equal(text, "0.5 Hz reached of 99.5 asked");
	figures_set_rate(&figures, 0);
	figures_rate(&figures, text);
	assert_string_equal(text, "99.5 Hz asked");
	figures.samples = 1;
	figures_rate(&figures, text);
	assert_string_equal(text, "99.5 Hz asked");
	/* No sample at all is a known rate. */
	figures.samples = 0;
	figures_rate(&figures, text);
	assert_string_equal(text, "0.0 Hz reached of 99.5 asked");
}

static void a_sample_counts_its_frames_and_its_innermost_lost_part(void **state)
{
	static const struct function lua = { .kind = FRAME_LUA }, table = { .kind = FRAME_ALLOCATED };
	struct figures_stack stack = { 0 };
	struct figures figures = { 0 };

	(void)state;
	figures_push(&stack, lost_function(LOST_TOO_DEEP), CERTAINTY_FUNCTION);
	figures_push(&stack, &lua, CERTAINTY_EXACT);
	figures_push(&stack, lost_function(LOST_BROKEN_CHAIN), CERTAINTY_FUNCTION);
	figures_push(&stack, &lua, CERTAINTY_EXACT);
	figures_push(&stack, &lua, CERTAINTY_NEAREST);
	figures_push(&stack, &table, CERTAINTY_FUNCTION);
	figures_add_stack(&figures, &stack, 10);
	figures_add_stack(&figures, &stack, 200);
	figures_add_stack(&figures, &(struct figures_stack){ 0 }, 3000);
	assert_int_equal(figures.samples, 3);
	assert_int_equal(figures.sampled_cpu_ns, 3210);
	assert_int_equal(figures.lost_cpu_ns, 210);
	assert_int_equal(figures.lost[LOST_BROKEN_CHAIN], 2);
	assert_int_equal(figures_lost(&figures), 2);
	assert_int_equal(figures.frames[CERTAINTY_EXACT], 4);
	assert_int_equal(figures.frames[CERTAINTY_NEAREST], 2);
	assert_int_equal(figures.frames[CERTAINTY_FUNCTION], 0);
}

/* A thread that runs in short turns may have one sample, late, for all of its time. */
static void lost_parts_tell_their_share_of_the_cpu_time_where_that_is_more(void **state)
{
	struct figures figures = example();
	char *text;

	(void)state;
	figures.sampled_cpu_ns = 1000000;
	figures.lost_cpu_ns = 22500;
	text = printed(&figures);
	assert_non_null(
		strstr(text, "lost     12 (0.40 %, but 2.25 % of the CPU time): frame chain broken 9"));
	free(text);
	figures.lost_cpu_ns = 8000; /* less than half a point more */
	text = printed(&figures);
	assert_non_null(strstr(text, "lost     12 (0.40 %): frame chain broken 9"));
	free(text);
}

static void samples_counted_elsewhere_replace_what_samples_tell(void **state)
{
	struct figures figures = example();
	const struct figures counted = {
		.samples = 7,
		.sampled_cpu_ns = 70,
		.lost_cpu_ns = 20,
		.missed_ticks = 99,
		.lost = { [LOST_TOO_DEEP] = 2 },
		.frames = { [CERTAINTY_EXACT] = 5 },
	};

	(void)state;
	figures_take_samples(&figures, &counted);
	assert_int_equal(figures.samples, 7);
	assert_int_equal(figures.sampled_cpu_ns, 70);
	assert_int_equal(figures.lost_cpu_ns, 20);
	assert_int_equal(figures.lost[LOST_TOO_DEEP], 2);
	assert_int_equal(figures.lost[LOST_BROKEN_CHAIN], 0);
	assert_int_equal(figures.frames[CERTAINTY_EXACT], 5);
	assert_int_equal(figures.frames[CERTAINTY_NEAREST], 0);
	assert_int_equal(figures.missed_ticks, 4);
}

static void less_certain_bytes_are_told_by_their_kind(void **state)
{
	struct figures figures = { 0 };
	char text[FIGURES_BYTES_SIZE];

	(void)state;
	assert_null(figures_uncertain_bytes(&figures, text));
	figures.alloc_least = 1;
	assert_ptr_equal(figures_uncertain_bytes(&figures, text), text);
	assert_non_null(strstr(text, " may be any more: looks came"));
	assert_null(strstr(text, "estimated"));
	assert_null(strstr(text, ", "));
	figures.alloc_estimated = 1;
	assert_non_null(figures_uncertain_bytes(&figures, text));
	assert_non_null(strstr(text, " are estimated, "));
	assert_non_null(strstr(text, " may be any more: looks came"));
	figures.alloc_least = 0;
	assert_non_null(figures_uncertain_bytes(&figures, text));
	assert_non_null(strstr(text, " are estimated: looks came"));
	assert_null(strstr(text, "any more"));
	figures.is_part = true;
	assert_non_null(figures_uncertain_bytes(&figures, text));
	assert_non_null(strstr(text, "of all that was recorded, "));
	assert_non_null(strstr(text, " are estimated: looks came"));
}

static void bytes_of_large_allocations_are_told(void **state)
{
	struct figures figures = { .alloc_least = 1 };
	char text[FIGURES_BYTES_SIZE];

	(void)state;
	assert_null(figures_large_bytes(&figures, text));
	figures.alloc_large = 1200000000;
	figures.alloc_all = 120000000000;
	assert_ptr_equal(figures_large_bytes(&figures, text), text);
	assert_string_equal(
		text,
		"about 1.2 GB (estimated) are in allocations of 64 KiB and more: who has how many of these is "
		"rough, tables that grow may have too many");
	figures.is_part = true;
	assert_non_null(figures_large_bytes(&figures, text));
	assert_non_null(strstr(text, "of all that was recorded, about 1.2 GB "));
	/* Where they are few, it hardly matters. */
	figures.alloc_all++;
	assert_null(figures_large_bytes(&figures, text));
}

static void of_an_older_recording_it_is_not_known_what_is_large(void **state)
{
	struct figures figures = { .alloc_large_unknown = true };
	json_t *object = figures_json(&figures);
	char text[FIGURES_BYTES_SIZE];

	(void)state;
	assert_true(json_is_null(json_object_get(json_object_get(object, "alloc_bytes"), "large")));
	json_decref(object);
	/* Likewise if it is a part of a sum. */
	figures.alloc_all = figures.alloc_large = 1000;
	assert_null(figures_large_bytes(&figures, text));
}

static void without_an_end_it_is_not_known_which_bytes_are_less_certain(void **state)
{
	struct figures figures = { .is_unfinished = true };
	char text[FIGURES_BYTES_SIZE];

	(void)state;
	assert_null(figures_uncertain_bytes(&figures, text));
	figures.target_cpu_unknown = true;
	assert_ptr_equal(figures_uncertain_bytes(&figures, text), text);
	assert_string_equal(text, "how certain the bytes are is not known: the recording has no end");
	figures.is_unfinished = false;
	assert_null(figures_uncertain_bytes(&figures, text));
}

static void people_read_each_reason_that_occurs(void **state)
{
	(void)state;
	for (int i = 0; i < LOST_COUNT; i++) {
		struct figures figures = { .samples = 1 };
		char *text;

		figures.lost[i] = 1;
		text = printed(&figures);
		assert_non_null(strstr(text, "(100.00 %): "));
		assert_non_null(strstr(text, lost_reason_text((enum lost_reason)i)));
		free(text);
	}
}

static void every_reason_has_its_own_text(void **state)
{
	(void)state;
	for (int i = 0; i < LOST_COUNT; i++) {
		assert_non_null(lost_reason_text((enum lost_reason)i));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(lost_reason_text((enum lost_reason)i),
						lost_reason_text((enum lost_reason)j));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_json_has_units_in_its_names),
		cmocka_unit_test(no_cpu_time_is_told_of_samples_that_have_none),
		cmocka_unit_test(people_read_a_few_lines),
		cmocka_unit_test(people_read_what_was_dropped_and_how_long_nothing_was_sampled),
		cmocka_unit_test(the_document_is_whole_lines_with_what_was_added),
		cmocka_unit_test(a_part_of_the_samples_has_no_share_of_what_counts_for_all),
		cmocka_unit_test(figures_of_nothing_are_zeros),
		cmocka_unit_test(a_sum_has_the_figures_of_both),
		cmocka_unit_test(a_part_of_a_run_has_what_was_counted_meanwhile),
		cmocka_unit_test(the_rate_says_what_was_reached_unless_it_is_unknown),
		cmocka_unit_test(a_sample_counts_its_frames_and_its_innermost_lost_part),
		cmocka_unit_test(lost_parts_tell_their_share_of_the_cpu_time_where_that_is_more),
		cmocka_unit_test(samples_counted_elsewhere_replace_what_samples_tell),
		cmocka_unit_test(less_certain_bytes_are_told_by_their_kind),
		cmocka_unit_test(bytes_of_large_allocations_are_told),
		cmocka_unit_test(of_an_older_recording_it_is_not_known_what_is_large),
		cmocka_unit_test(without_an_end_it_is_not_known_which_bytes_are_less_certain),
		cmocka_unit_test(people_read_each_reason_that_occurs),
		cmocka_unit_test(every_reason_has_its_own_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
