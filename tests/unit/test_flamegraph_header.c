/* SPDX-License-Identifier: MIT */
/* The lines above a flame graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "output/flamegraph/flamegraph_header.h"

static struct flamegraph_header header;

/* All lines of a session with its figures. */
static const char *lines_of(const struct session *session, const struct figures *figures)
{
	static char text[FLAMEGRAPH_HEADER_LINES_MAX * FLAMEGRAPH_HEADER_LINE_SIZE];
	size_t end = 0;

	flamegraph_header_fill(&header, session, figures);
	for (size_t i = 0; i < header.count; i++)
		end += (size_t)snprintf(text + end, sizeof(text) - end, "%s\n", header.lines[i]);
	return text;
}

static void a_recording_is_told_with_its_quality_and_its_cost(void **state)
{
	const struct session session = {
		.pid = 42,
		.target = "luajit te\nst.lua",
		.command_line = "ljspy record \x1b",
		.cause = "cpu>90%\tfor 10s",
		.start_unix_ns = UINT64_C(1700000000999000000),
		.duration_ns = UINT64_C(2550000000),
	};
	struct figures figures = {
		.samples = 200,
		.lost = { [LOST_ASLEEP] = 3, [LOST_TOO_DEEP] = 2 },
		.missed_ticks = 7,
		.rate_asked_hz = 99,
		.rate_reached_hz = 78.25,
		.alloc_estimated = 2000000,
		.alloc_all = 9000000,
		.alloc_large = 3000000,
		.frames = { [CERTAINTY_EXACT] = 120, [CERTAINTY_NEAREST] = 60, [CERTAINTY_FUNCTION] = 20 },
	};

	(void)state;
	for (int i = 0; i < 98; i++)
		histogram_add(&figures.pause_ns, 20223);
	histogram_add(&figures.pause_ns, 29951);
	histogram_add(&figures.pause_ns, 40500);
	assert_string_equal(
		lines_of(&session, &figures),
		"CPU time of luajit te\\nst.lua (pid 42)\n"
		"2023-11-14 22:13:20 UTC, 2.5 s, 200 samples, 78.2 Hz reached of 99 asked\n"
		"Recorded because of cpu>90%\\tfor 10s\n"
		"$ ljspy record \\x1b\n"
		"7 ticks missed, 5 samples lost (2.50 %): thread asleep when sampled 3, stack too deep 2\n"
		"2.0 MB are estimated: looks came too rarely or too late to count them\n"
		"about 3.0 MB (estimated) are in allocations of 64 KiB and more: who has how many of these is rough, "
		"tables that grow may have too many\n"
		"paused p50 20.2 \u00b5s, p99 30.0 \u00b5s, max 40.5 \u00b5s; lines 60.0 % exact, 30.0 % nearest known, 10.0 % unknown\n");
}

static void what_is_unknown_is_left_out(void **state)
{
	(void)state;
	assert_string_equal(lines_of(&(struct session){ 0 }, &(struct figures){ 0 }),
			    "CPU time of LuaJIT\n"
			    "0.0 s, 0 samples\n"
			    "0 ticks missed, 0 samples lost (0.00 %)\n"
			    "never paused\n");
}

static void a_single_pause_frame_or_loss_is_told(void **state)
{
	struct figures figures = { .samples = 1,
				   .lost = { [LOST_ASLEEP] = 1 },
				   .frames = { [CERTAINTY_EXACT] = 1 } };

	(void)state;
	histogram_add(&figures.pause_ns, 0);
	assert_string_equal(lines_of(&(struct session){ 0 }, &figures),
			    "CPU time of LuaJIT\n"
			    "0.0 s, 1 samples\n"
			    "0 ticks missed, 1 samples lost (100.00 %): thread asleep when sampled 1\n"
			    "paused p50 0.0 \u00b5s, p99 0.0 \u00b5s, max 0.0 \u00b5s; "
			    "lines 100.0 % exact, 0.0 % nearest known, 0.0 % unknown\n");
}

static void a_heap_has_objects_and_costs_nothing(void **state)
{
	const struct session session = {
		.pid = 42,
		.target = "luajit",
		.command_line = "ljspy heap",
		.start_unix_ns = UINT64_C(1700000000000000000),
		.clock = WEIGHT_HEAP_BYTES,
	};

	(void)state;
	assert_string_equal(lines_of(&session, &(struct figures){ .samples = 5, .missed_ticks = 3 }),
			    "Heap of luajit (pid 42)\n"
			    "2023-11-14 22:13:20 UTC, 5 objects\n"
			    "$ ljspy heap\n");
	flamegraph_header_add_baseline(&header, &session, "a\nb", 9);
	assert_string_equal(header.lines[3], "Compared with a\\nb, 9 objects");
}

static void what_is_uncertain_has_a_line_if_there_is_any(void **state)
{
	(void)state;
	header.count = 0;
	flamegraph_header_add_uncertain(&header, NULL, false);
	flamegraph_header_add_uncertain(&header, "", true);
	assert_int_equal(header.count, 0);
	flamegraph_header_add_uncertain(&header, "3 bytes", false);
	flamegraph_header_add_uncertain(&header, "4 bytes", true);
	assert_int_equal(header.count, 2);
	assert_string_equal(header.lines[0], "3 bytes");
	assert_string_equal(header.lines[1], "Before: 4 bytes");
}

static void lines_on_the_baseline_and_on_what_is_left_out_are_added(void **state)
{
	(void)state;
	lines_of(&(struct session){ 0 }, &(struct figures){ 0 });
	flamegraph_header_add_baseline(&header, &(struct session){ 0 }, NULL, 9);
	flamegraph_header_add_left_out(&header, 12, 0.012345);
	assert_int_equal(header.count, 6);
	assert_string_equal(header.lines[4], "Compared with an earlier recording, 9 samples");
	assert_string_equal(header.lines[5],
			    "12 frames of less than 1.2345 % each are left out: [left out] stands for them");
}

/* Commands and names of files may be as long as the kernel lets them be. */
static void long_texts_leave_room_for_the_rest_of_their_line(void **state)
{
	static char longest[100000];
	const struct session session = {
		.pid = 42, .target = longest, .command_line = longest, .cause = longest
	};

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	lines_of(&session, &(struct figures){ 0 });
	assert_non_null(strstr(header.lines[0], "xxx (pid 42)"));
	assert_int_equal(strlen(header.lines[2]), strlen("Recorded because of ") + 1024);
	assert_int_equal(strlen(header.lines[3]), strlen("$ ") + 1024);
	flamegraph_header_add_baseline(&header, &session, longest, 9);
	assert_non_null(strstr(header.lines[header.count - 1], "xxx, 9 samples"));
}

static void all_lines_and_all_reasons_have_room(void **state)
{
	const struct session session = { .target = "x", .command_line = "x", .cause = "x" };
	struct figures figures = { .samples = 1, .alloc_least = 1, .alloc_all = 1, .alloc_large = 1 };

	(void)state;
	for (int i = 0; i < LOST_COUNT; i++)
		figures.lost[i] = UINT64_MAX / 100;
	lines_of(&session, &figures);
	flamegraph_header_add_baseline(&header, &session, "x", 9);
	flamegraph_header_add_left_out(&header, 12, 0.5);
	assert_int_equal(header.count, FLAMEGRAPH_HEADER_LINES_MAX);
	for (int i = 0; i < LOST_COUNT; i++)
		assert_non_null(strstr(header.lines[4], lost_reason_text((enum lost_reason)i)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recording_is_told_with_its_quality_and_its_cost),
		cmocka_unit_test(what_is_unknown_is_left_out),
		cmocka_unit_test(a_single_pause_frame_or_loss_is_told),
		cmocka_unit_test(a_heap_has_objects_and_costs_nothing),
		cmocka_unit_test(what_is_uncertain_has_a_line_if_there_is_any),
		cmocka_unit_test(lines_on_the_baseline_and_on_what_is_left_out_are_added),
		cmocka_unit_test(long_texts_leave_room_for_the_rest_of_their_line),
		cmocka_unit_test(all_lines_and_all_reasons_have_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
