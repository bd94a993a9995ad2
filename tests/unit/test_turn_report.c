/* SPDX-License-Identifier: MIT */
/* Long turns of event loops, as people and programs read them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/reports/turn_report.h"
#include "tests/unit/kept_text.h"

#define MS UINT64_C(1000000)

static const struct function handle = {
	.kind = FRAME_LUA, .name = "han\ndle", .file = "@app.lua", .firstline = 5
};
static const struct function log_it = {
	.kind = FRAME_LUA, .name = "log", .file = "@log.lua", .firstline = 1
};
static const struct function reads = { .kind = FRAME_BUILTIN, .name = "io.read" };
static const struct function hash = { .kind = FRAME_NATIVE,
				      .name = "MD5_\nUpdate",
				      .module = "libcrypto.so.3" };
static const struct function poll = { .kind = FRAME_NATIVE, .name = "epoll_wait", .module = "libc.so.6" };

static const struct frame reading[] = { { &reads, 0, CERTAINTY_EXACT, false },
					{ &handle, 8, CERTAINTY_EXACT, false },
					{ &log_it, 2, CERTAINTY_EXACT, false } };
static const struct frame hashing[] = { { &hash, 0, CERTAINTY_EXACT, false },
					{ &reads, 0, CERTAINTY_EXACT, false },
					{ &handle, 9, CERTAINTY_EXACT, false } };
static const struct frame logging[] = { { &log_it, 2, CERTAINTY_EXACT, false },
					{ &handle, 10, CERTAINTY_EXACT, false } };
static const struct frame polling[] = { { &poll, 0, CERTAINTY_EXACT, false },
					{ &hash, 0, CERTAINTY_EXACT, false } };

static struct sample sample_of(const struct frame *frames, size_t count)
{
	return (struct sample){
		.pid = 7, .tid = 7, .vm_state = VM_STATE_C, .frames = frames, .frame_count = count
	};
}

static void add(struct turn_report *report, uint64_t turn, uint64_t wall_ms, struct sample sample)
{
	sample.wall_ns = wall_ms * MS;
	assert_int_equal(turn_report_add(report, &(struct turn){ .number = turn }, &sample), 0);
}

static void close_turn(struct turn_report *report, uint64_t number, uint64_t ms, uint64_t slack_ms,
		       bool is_long)
{
	const struct turn turn = {
		.number = number,
		.begin_ns = 500 * MS,
		.end_ns = (500 + ms) * MS,
		.slack_ns = slack_ms * MS,
		.may_be_several = number == 2 || number == 3,
	};

	turn_report_close(report, &turn, is_long);
}

/* Of turns of 20 ms or more. */
static struct turn_report *made_up_report(void)
{
	struct turn_report *report = turn_report_new(20 * MS);
	struct sample sample;

	assert_non_null(report);
	add(report, 1, 30, sample_of(reading, 3));
	add(report, 2, 9, sample_of(reading, 3)); /* beside the first one, of another loop */
	add(report, 1, 5, sample_of(hashing, 3));
	add(report, 1, 14, sample_of(reading, 3));
	close_turn(report, 1, 49, 3, true);
	add(report, 2, 16, sample_of(logging, 2));
	close_turn(report, 2, 25, 5, true);
	close_turn(report, 3, 19, 50, false);
	sample = sample_of(reading, 3);
	sample.phase = "content";
	add(report, 4, 1, sample);
	sample.vm_state = VM_STATE_GC; /* not the work of the function that it was called in */
	add(report, 4, 2, sample);
	for (int state = VM_STATE_RECORDING; state <= VM_STATE_ASSEMBLING; state++) {
		sample.vm_state = (enum vm_state)state;
		add(report, 4, 100, sample);
	}
	sample.thread_state = THREAD_RUNNABLE;
	add(report, 4, 600, sample);
	sample.vm_state = VM_STATE_C;
	add(report, 4, 99, sample);
	add(report, 4, 40, sample_of(polling, 2));
	add(report, 4, 20, sample_of(NULL, 0));
	close_turn(report, 4, 1062, 4, true);
	/* Still open: nothing of it counts. */
	add(report, 5, 1000, sample_of(logging, 2));
	return report;
}

static void lines_have_the_time_of_long_turns_the_heaviest_first(void **state)
{
	struct turn_report *report = made_up_report(), *empty = turn_report_new(2500 * MS / 1000);
	struct kept_text kept;

	(void)state;
	kept_text_begin(&kept);
	assert_int_equal(turn_report_print(kept.out, report, 10000 * MS), 0);
	kept_text_json(&kept, turn_report_json(report));
	assert_int_equal(turn_report_print(kept.out, empty, 500 * MS), 0);
	close_turn(empty, 1, 1, 1, false);
	assert_int_equal(turn_report_print(kept.out, empty, 500 * MS), 0);
	kept_text_json(&kept, turn_report_json(empty));
	turn_report_free(report);
	turn_report_free(empty);
	turn_report_free(NULL);
	kept_text_check(&kept, "turns.txt");
}

static void sums_and_lines_are_given_to_findings(void **state)
{
	struct turn_report *report = made_up_report();
	const struct turn_sums sums = turn_report_sums(report);
	struct turn_line *lines;
	size_t count = 0;

	(void)state;
	assert_int_equal(sums.threshold_ns, 20 * MS);
	assert_int_equal(sums.seen, 4);
	assert_int_equal(sums.long_turns, 3);
	assert_int_equal(sums.unsure, 1);
	assert_int_equal(sums.ns, (49 + 25 + 1062) * MS);
	assert_int_equal(sums.longest_ns, 1062 * MS);
	lines = turn_report_lines(report, &count);
	assert_non_null(lines);
	assert_int_equal(count, 9);
	assert_true(lines[0].wants_cpu);
	assert_ptr_equal(lines[0].function, &handle);
	assert_null(lines[0].callee);
	assert_int_equal(lines[0].line, 8);
	assert_int_equal(lines[0].ns, 699 * MS);
	assert_int_equal(lines[2].ns, 53 * MS);
	assert_int_equal(lines[2].longest_ns, 44 * MS);
	assert_ptr_equal(lines[2].callee, &reads);
	assert_false(lines[2].wants_cpu);
	assert_ptr_equal(lines[3].function, &poll);
	assert_null(lines[4].function);
	free(lines);
	turn_report_free(report);
}

static void turns_are_counted_in_steps_of_1_2_and_5(void **state)
{
	static const uint64_t lengths_ms[] = { 20, 39, 40, 99, 100, 199, 200, 399, 2000000, 3999999 };
	static const struct {
		unsigned from_ms, to_ms, turns;
	} steps[] = {
		{ 20, 40, 2 }, { 40, 100, 2 }, { 100, 200, 2 }, { 200, 400, 2 }, { 2000000, 4000000, 2 }
	};
	struct turn_report *report = turn_report_new(20 * MS);
	json_t *json, *histogram;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths_ms) / sizeof(lengths_ms[0]); i++)
		close_turn(report, i, lengths_ms[i], 0, true);
	json = turn_report_json(report);
	histogram = json_object_get(json, "histogram");
	assert_int_equal(json_array_size(histogram), sizeof(steps) / sizeof(steps[0]));
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const json_t *step = json_array_get(histogram, i);

		assert_int_equal(json_number_value(json_object_get(step, "from_ms")), steps[i].from_ms);
		assert_int_equal(json_number_value(json_object_get(step, "to_ms")), steps[i].to_ms);
		assert_int_equal(json_integer_value(json_object_get(step, "turns")), steps[i].turns);
	}
	json_decref(json);
	turn_report_free(report);
}

/* That of the most turns has all 30 signs, and one of any turns at all has a sign. */
static void a_bar_is_as_long_as_its_share_of_the_most(void **state)
{
	static const struct {
		uint64_t ms;
		unsigned int turns, signs;
	} steps[] = { { 20, 100, 30 }, { 40, 50, 15 }, { 100, 1, 1 }, { 200, 0, 0 }, { 400, 4, 2 } };
	struct turn_report *report = turn_report_new(20 * MS);
	struct kept_text kept;

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		for (unsigned int turn = 0; turn < steps[i].turns; turn++)
			close_turn(report, 1, steps[i].ms, 0, true);
	kept_text_begin(&kept);
	assert_int_equal(turn_report_print(kept.out, report, MS), 0);
	fclose(kept.out);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		char row[100];
		const char *found, *bar;

		snprintf(row, sizeof(row), "\n  %12u  %6u  ", (unsigned int)steps[i].ms, steps[i].turns);
		found = strstr(kept.text, row);
		assert_non_null(found);
		bar = found + strlen(row);
		assert_int_equal(strspn(bar, "#"), steps[i].signs);
	}
	free(kept.text);
	turn_report_free(report);
}

static void texts_show_twenty_lines_and_documents_all(void **state)
{
	struct turn_report *report = turn_report_new(20 * MS);
	struct frame frame = { .function = &handle };
	struct kept_text kept;
	json_t *json;

	(void)state;
	for (uint32_t i = 1; i <= 23; i++) {
		frame.line = i;
		add(report, 1, i, sample_of(&frame, 1));
		if (i >= 20) {
			kept_text_begin(&kept);
			close_turn(report, 1, 276, 0, true);
			assert_int_equal(turn_report_print(kept.out, report, MS), 0);
			fclose(kept.out);
			if (i == 20)
				assert_null(strstr(kept.text, "more\n"));
			if (i == 21)
				assert_non_null(strstr(kept.text, "\n  and 1 more\n"));
			free(kept.text);
		}
	}
	json = turn_report_json(report);
	assert_int_equal(json_array_size(json_object_get(json, "lines")), 23);
	json_decref(json);
	turn_report_free(report);
}

static void a_full_disk_is_reported(void **state)
{
	struct turn_report *report = made_up_report(), *empty = turn_report_new(MS);
	FILE *out = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(out);
	setvbuf(out, NULL, _IONBF, 0);
	assert_int_equal(turn_report_print(out, report, MS), -EIO);
	assert_int_equal(turn_report_print(out, empty, MS), -EIO);
	fclose(out);
	turn_report_free(report);
	turn_report_free(empty);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_have_the_time_of_long_turns_the_heaviest_first),
		cmocka_unit_test(sums_and_lines_are_given_to_findings),
		cmocka_unit_test(turns_are_counted_in_steps_of_1_2_and_5),
		cmocka_unit_test(a_bar_is_as_long_as_its_share_of_the_most),
		cmocka_unit_test(texts_show_twenty_lines_and_documents_all),
		cmocka_unit_test(a_full_disk_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
