/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/reports/turn_report.h"
#include "output/sample/functions.h"
#include "tests/made_up.h"

enum { MS = 1000000, THRESHOLD_MS = 20 };

/* What was handed on. */
static struct {
	struct turn_report *report;
	uint64_t last_ns; /* samples are in time order */
	unsigned samples, long_turns, turns;
	uint64_t long_ns, weights_ns;
	struct turn last;   /* that was closed */
	char names[2][128]; /* of the last sample */
	int take_error;
	unsigned refuse_from, refusals; /* which samples take_error is for, from 1 on */
} seen;

/* By turns_finish(). */
struct told {
	int error;
	uint64_t lost;
};

static int take(void *context, const struct turn *turn, const struct sample *sample)
{
	(void)context;
	assert_true(sample->time_ns >= seen.last_ns);
	seen.last_ns = sample->time_ns;
	seen.samples++;
	seen.weights_ns += sample->wall_ns;
	snprintf(seen.names[0], sizeof(seen.names[0]), "%s",
		 sample->process_name ? sample->process_name : "-");
	snprintf(seen.names[1], sizeof(seen.names[1]), "%s", sample->thread_name ? sample->thread_name : "-");
	if (seen.take_error && seen.samples >= seen.refuse_from &&
	    seen.samples - seen.refuse_from < seen.refusals)
		return seen.take_error;
	return turn_report_add(seen.report, turn, sample);
}

static void close_turn(void *context, const struct turn *turn, bool is_long)
{
	(void)context;
	seen.turns++;
	seen.last = *turn;
	seen.long_turns += is_long;
	if (is_long)
		seen.long_ns += turn->end_ns - turn->begin_ns;
	turn_report_close(seen.report, turn, is_long);
}

static const struct function *handler, *reader, *sleeper;

static struct turns *begin(void)
{
	const struct turns_options options = { .threshold_ns = THRESHOLD_MS * MS,
					       .take = take,
					       .close = close_turn };
	struct turns *turns = turns_new(&options);

	memset(&seen, 0, sizeof(seen));
	seen.report = turn_report_new(options.threshold_ns);
	handler = lua("handle", "@app.lua", 10);
	reader = other(FRAME_BUILTIN, "io.read", NULL);
	sleeper = other(FRAME_BUILTIN, "os.execute", NULL);
	assert_non_null(turns);
	assert_non_null(seen.report);
	return turns;
}

static void end(struct turns *turns)
{
	uint64_t lost = 0;

	assert_int_equal(turns_finish(turns, &lost), 0);
	assert_int_equal(lost, 0);
	turns_free(turns);
}

struct look {
	unsigned ms;
	enum thread_state state;
	uint32_t line;
	const struct function *const *callee;
	unsigned loop_ms, sleeps;
	pid_t tid;
	bool rests; /* it is idle, but does not wait for events */
};

static void look(struct turns *turns, struct look look)
{
	struct frame frames[] = {
		{ .function = look.callee ? *look.callee : NULL },
		{ .function = handler, .line = look.line },
	};
	const struct sample sample = {
		.time_ns = (uint64_t)look.ms * MS,
		.pid = 7,
		.tid = look.tid ? look.tid : 7,
		.thread_state = look.state,
		.vm_state = VM_STATE_C,
		.wall_ns = 1,
		.loop_ns = (uint64_t)look.loop_ms * MS,
		.sleeps = look.sleeps,
		.awaits_events = look.state == THREAD_IDLE && !look.rests,
		.frames = look.callee ? frames : frames + 1,
		.frame_count = look.callee ? 2 : 1,
	};

	assert_int_equal(turns_add(turns, &sample), 0);
}

static const json_t *line_at(const json_t *report, size_t index)
{
	const json_t *line = json_array_get(json_object_get(report, "lines"), index);

	assert_non_null(line);
	return line;
}

static double number(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

/*
 * A thread of a pool waits for another's signal, a program that works in steps sleeps: nothing waits for
 * their work.
 */
static void only_what_waits_for_events_is_a_loop(void **state)
{
	struct turns *turns = begin();

	(void)state;
	look(turns, (struct look){ 1000, THREAD_IDLE, 0, NULL, .sleeps = 1, .rests = true });
	look(turns, (struct look){ 1001, THREAD_RUNNING, 11, NULL, .sleeps = 1 });
	look(turns, (struct look){ 1101, THREAD_RUNNING, 11, NULL, .sleeps = 1 });
	look(turns, (struct look){ 1102, THREAD_IDLE, 0, NULL, .sleeps = 2, .rests = true });
	assert_int_equal(seen.turns, 0);
	/* A loop may sleep for a time, too. */
	look(turns, (struct look){ 1200, THREAD_IDLE, 0, NULL, .sleeps = 3 });
	look(turns, (struct look){ 1201, THREAD_RUNNING, 11, NULL, .sleeps = 3 });
	look(turns, (struct look){ 1301, THREAD_RUNNING, 11, NULL, .sleeps = 3 });
	look(turns, (struct look){ 1302, THREAD_IDLE, 0, NULL, .sleeps = 4, .rests = true });
	assert_int_equal(seen.turns, 1);
	assert_int_equal(seen.long_turns, 1);
	turn_report_free(seen.report);
	end(turns);
}

/*
 * Where the first thread has a loop with a clock, another one works for a pool. It may have been seen first.
 */
static void a_thread_beside_the_loop_has_no_turns(void **state)
{
	struct turns *turns = begin();

	(void)state;
	look(turns, (struct look){ 900, THREAD_IDLE, 0, NULL, .sleeps = 1, .tid = 8 });
	look(turns, (struct look){ 990, THREAD_RUNNING, 15, NULL, .sleeps = 2, .tid = 8 });
	look(turns, (struct look){ 1000, THREAD_RUNNING, 11, NULL, .loop_ms = 999, .sleeps = 1 });
	look(turns, (struct look){ 1001, THREAD_IDLE, 0, NULL, .sleeps = 2 });
	look(turns, (struct look){ 1050, THREAD_RUNNING, 15, NULL, .sleeps = 2, .tid = 8 });
	assert_int_equal(seen.samples, seen.long_turns);
	look(turns, (struct look){ 1100, THREAD_RUNNING, 15, NULL, .sleeps = 2, .tid = 8 });
	look(turns, (struct look){ 1150, THREAD_IDLE, 0, NULL, .sleeps = 3, .tid = 8 });
	end(turns);
	/* What began before that was known ends with its last sample. */
	assert_int_equal(seen.turns, 2);
	assert_true(seen.long_ns < 50 * MS);
	turn_report_free(seen.report);
}

/* One turn of 100 ms and several short ones; the loop's clock says where they begin. */
static void a_clock_of_the_loop_tells_turns_apart(void **state)
{
	struct turns *turns = begin();
	json_t *json;

	(void)state;
	look(turns, (struct look){ 1000, THREAD_RUNNING, 11, NULL, .loop_ms = 995 });
	look(turns, (struct look){ 1010, THREAD_RUNNING, 11, NULL, .loop_ms = 1009 });
	look(turns, (struct look){ 1020, THREAD_RUNNING, 11, NULL, .loop_ms = 1012 });
	look(turns, (struct look){ 1060, THREAD_BLOCKED, 15, &sleeper, .loop_ms = 1012 });
	look(turns, (struct look){ 1100, THREAD_BLOCKED, 15, &sleeper, .loop_ms = 1012 });
	look(turns, (struct look){ 1115, THREAD_RUNNING, 11, NULL, .loop_ms = 1112 });
	look(turns, (struct look){ 1120, THREAD_IDLE, 0, NULL, .loop_ms = 1112 });
	end(turns);
	assert_int_equal(seen.turns, 4);
	assert_int_equal(seen.long_turns, 1);
	assert_int_equal(seen.samples, 3);
	assert_int_equal(seen.long_ns,
			 94 * MS); /* up to 1106, between the last look at it and the next one's begin */
	assert_int_equal(seen.weights_ns, seen.long_ns);
	json = turn_report_json(seen.report);
	assert_int_equal(number(json, "long_turns"), 1);
	assert_string_equal(json_string_value(json_object_get(line_at(json, 0), "doing")),
			    "os.execute [builtin]");
	assert_int_equal(number(line_at(json, 0), "line"), 15);
	assert_int_equal(number(line_at(json, 0), "ms"), 66);
	assert_int_equal(number(line_at(json, 1), "ms"), 28);
	json_decref(json);
	turn_report_free(seen.report);
}

/* What it would have run there had no part in it. */
static void waiting_for_a_cpu_is_told_apart(void **state)
{
	struct turns *turns = begin();
	json_t *json;

	(void)state;
	look(turns, (struct look){ 1000, THREAD_RUNNING, 15, &reader, .loop_ms = 1000 });
	look(turns, (struct look){ 1010, THREAD_RUNNABLE, 15, &reader, .loop_ms = 1000 });
	look(turns, (struct look){ 1050, THREAD_RUNNABLE, 15, &reader, .loop_ms = 1000 });
	look(turns, (struct look){ 1100, THREAD_IDLE, 0, NULL, .loop_ms = 1000 });
	end(turns);
	json = turn_report_json(seen.report);
	assert_int_equal(json_array_size(json_object_get(json, "lines")), 2);
	for (size_t i = 0; i < 2; i++) {
		const char *doing = json_string_value(json_object_get(line_at(json, i), "doing"));

		assert_int_equal(number(line_at(json, i), "line"), 15);
		assert_string_equal(doing, number(line_at(json, i), "ms") < 50 ? "io.read [builtin]"
									       : "waiting for a CPU");
	}
	json_decref(json);
	turn_report_free(seen.report);
}

/* Without one, a turn goes on as long as its thread does not go to sleep once more. */
static void sleeps_tell_turns_apart_elsewhere(void **state)
{
	struct turns *turns = begin();

	(void)state;
	look(turns,
	     (struct look){ 1000, THREAD_RUNNING, 11, NULL, .sleeps = 4 }); /* not known to be a loop */
	look(turns, (struct look){ 1100, THREAD_IDLE, 0, NULL, .sleeps = 5 });
	look(turns, (struct look){ 1110, THREAD_RUNNING, 11, NULL, .sleeps = 5 });
	look(turns, (struct look){ 1120, THREAD_RUNNING, 11, NULL, .sleeps = 6 });
	look(turns, (struct look){ 1130, THREAD_BLOCKED, 15, &reader, .sleeps = 8 });
	look(turns, (struct look){ 1140, THREAD_BLOCKED, 15, &reader, .sleeps = 8 });
	look(turns, (struct look){ 1150, THREAD_BLOCKED, 15, &reader, .sleeps = 8 });
	look(turns, (struct look){ 1160, THREAD_IDLE, 0, NULL, .sleeps = 9 });
	end(turns);
	assert_int_equal(seen.turns, 3);
	assert_int_equal(seen.long_turns, 1);
	assert_int_equal(seen.long_ns, 30 * MS);
	assert_false(seen.last.may_be_several);
	turn_report_free(seen.report);
}

/* A loop that always finds work looks the same as one long turn, unless it has a clock. */
static void turns_without_sleeps_may_be_several(void **state)
{
	(void)state;
	for (unsigned loop_ms = 0; loop_ms <= 1100; loop_ms += 1100) {
		struct turns *turns = begin();

		look(turns, (struct look){ 1100, THREAD_IDLE, 0, NULL, .sleeps = 5 });
		for (unsigned ms = 1110; ms < 1200; ms += 10)
			look(turns,
			     (struct look){ ms, THREAD_RUNNING, 11, NULL, .loop_ms = loop_ms, .sleeps = 5 });
		look(turns, (struct look){ 1200, THREAD_IDLE, 0, NULL, .sleeps = 6 });
		end(turns);
		assert_int_equal(seen.long_turns, 1);
		assert_int_equal(seen.last.may_be_several, loop_ms == 0);
		turn_report_free(seen.report);
	}
}

/* Of two loops, the samples of the long turns come in time order. */
static void loops_do_not_get_mixed_up(void **state)
{
	struct turns *turns = begin();

	(void)state;
	for (unsigned ms = 1000; ms <= 1100; ms += 10) {
		look(turns, (struct look){ ms, THREAD_BLOCKED, 15, &reader, .loop_ms = 999, .tid = 7 });
		look(turns, (struct look){ ms + 1, ms % 20 ? THREAD_RUNNING : THREAD_IDLE, 11, NULL,
					   .loop_ms = ms - 2, .tid = 8 });
		look(turns, (struct look){ ms + 2, ms < 1050 ? THREAD_RUNNING : THREAD_IDLE, 12, NULL,
					   .loop_ms = 998, .tid = 9 });
	}
	end(turns);
	assert_int_equal(seen.long_turns, 2);
	assert_int_equal(seen.samples, 11 + 5);
	assert_int_equal(seen.weights_ns, seen.long_ns);
	turn_report_free(seen.report);
}

static void what_goes_on_at_the_end_counts(void **state)
{
	struct turns *turns = begin();
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	look(turns, (struct look){ 1000, THREAD_RUNNING, 15, &sleeper, .loop_ms = 999 });
	look(turns, (struct look){ 1500, THREAD_RUNNING, 15, &sleeper, .loop_ms = 999 });
	end(turns);
	assert_int_equal(seen.long_ns, 501 * MS);
	assert_int_equal(turn_report_print(out, seen.report, UINT64_C(10000) * MS), 0);
	fclose(out);
	assert_non_null(strstr(text, "1 turns of 20 ms or more, 501.0 ms of 10.0 s"));
	assert_non_null(strstr(text, "handle app.lua:15: os.execute [builtin]"));
	free(text);
	turn_report_free(seen.report);
}

static void a_turn_of_the_threshold_is_long(void **state)
{
	(void)state;
	for (unsigned late = 0; late < 2; late++) {
		struct turns *turns = begin();

		look(turns, (struct look){ 1000, THREAD_IDLE, 0, NULL, .sleeps = 1 });
		look(turns, (struct look){ 1030, THREAD_RUNNING, 11, NULL, .loop_ms = 1020 + late });
		look(turns, (struct look){ 1050, THREAD_IDLE, 0, NULL, .sleeps = 2 });
		end(turns);
		assert_int_equal(seen.turns, 1);
		assert_int_equal(seen.long_turns, late ? 0 : 1);
		assert_int_equal(seen.last.begin_ns, (1020 + late) * (uint64_t)MS);
		assert_int_equal(seen.last.end_ns, 1040 * (uint64_t)MS);
		assert_int_equal(seen.last.pid, 7);
		assert_int_equal(seen.last.tid, 7);
		/* Half the time between the looks at its end, and a bit for the loop's clock. */
		assert_in_range(seen.last.slack_ns, 11 * MS, 25 * MS);
		turn_report_free(seen.report);
	}
}

/* Half-way between two looks, and so unsure by as much. */
static void ends_that_are_not_known_are_between_two_looks(void **state)
{
	struct turns *turns = begin();

	(void)state;
	look(turns, (struct look){ 1000, THREAD_IDLE, 0, NULL, .sleeps = 1 });
	look(turns, (struct look){ 1010, THREAD_RUNNING, 11, NULL, .sleeps = 2 });
	look(turns, (struct look){ 1040, THREAD_RUNNING, 12, NULL, .sleeps = 2 });
	look(turns, (struct look){ 1060, THREAD_IDLE, 0, NULL, .sleeps = 3 });
	end(turns);
	assert_int_equal(seen.last.begin_ns, 1005 * (uint64_t)MS);
	assert_int_equal(seen.last.end_ns, 1050 * (uint64_t)MS);
	assert_int_equal(seen.last.slack_ns, 15 * MS);
	assert_int_equal(seen.weights_ns, 45 * MS);
	turn_report_free(seen.report);
}

/* The loop's clock counts milliseconds: of the same turn, it may be one step off. */
static void a_clock_that_is_no_later_than_the_last_look_tells_no_begin(void **state)
{
	struct turns *turns = begin();

	(void)state;
	look(turns, (struct look){ 1000, THREAD_RUNNING, 11, NULL, .loop_ms = 990 });
	look(turns, (struct look){ 1010, THREAD_RUNNING, 11, NULL, .loop_ms = 1000 }); /* another turn */
	end(turns);
	assert_int_equal(seen.turns, 2);
	assert_int_equal(seen.last.begin_ns, 1005 * (uint64_t)MS);
	turn_report_free(seen.report);
	turns = begin();
	look(turns, (struct look){ 1000, THREAD_RUNNING, 11, NULL, .loop_ms = 990 });
	look(turns, (struct look){ 1010, THREAD_RUNNING, 11, NULL, .loop_ms = 1020 }); /* not yet */
	end(turns);
	assert_int_equal(seen.turns, 2);
	assert_int_equal(seen.last.begin_ns, 1005 * (uint64_t)MS);
	turn_report_free(seen.report);
}

/* It counts milliseconds, which were converted: of one turn, it may be less than half a step off. */
static void half_a_step_of_the_clock_is_the_same_turn_and_more_is_another(void **state)
{
	static const struct {
		int64_t off_ns;
		unsigned int turns;
	} known[] = { { 0, 1 },       { 500000, 1 },  { 500001, 2 },  { 1000000, 2 },
		      { -500000, 1 }, { -500001, 2 }, { -1000000, 2 } };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct turns *turns = begin();
		struct frame frame = { .function = handler, .line = 11 };
		struct sample sample = { .time_ns = 1000 * (uint64_t)MS,
					 .loop_ns = 990 * (uint64_t)MS,
					 .pid = 7,
					 .tid = 7,
					 .frames = &frame,
					 .frame_count = 1 };

		assert_int_equal(turns_add(turns, &sample), 0);
		sample.time_ns += MS;
		sample.loop_ns += (uint64_t)known[i].off_ns;
		assert_int_equal(turns_add(turns, &sample), 0);
		end(turns);
		assert_int_equal(seen.turns, known[i].turns);
		turn_report_free(seen.report);
	}
}

/* Its samples are handed on as soon as it is known to be long. */
static void a_turn_is_long_from_the_threshold_on_while_it_lasts(void **state)
{
	struct turns *turns = begin();

	(void)state;
	look(turns, (struct look){ 1000, THREAD_RUNNING, 11, NULL, .loop_ms = 1000 });
	look(turns, (struct look){ 1019, THREAD_RUNNING, 11, NULL, .loop_ms = 1000 });
	assert_int_equal(seen.samples, 0);
	look(turns, (struct look){ 1020, THREAD_RUNNING, 11, NULL, .loop_ms = 1000 });
	assert_int_equal(seen.samples, 2);
	end(turns);
	assert_int_equal(seen.last.begin_ns, 1000 * (uint64_t)MS);
	/* That of the loop's clock, which showed the time of the first look. */
	assert_in_range(seen.last.slack_ns, MS, 20 * MS);
	turn_report_free(seen.report);
}

/* Where a look did not find the loop's clock, the count of sleeps still tells. */
static void sleeps_tell_turns_apart_where_one_look_has_no_clock(void **state)
{
	(void)state;
	for (unsigned int slept = 0; slept < 2; slept++) {
		struct turns *turns = begin();

		look(turns, (struct look){ 1000, THREAD_RUNNING, 11, NULL, .loop_ms = 999, .sleeps = 4 });
		look(turns, (struct look){ 1010, THREAD_RUNNING, 11, NULL, .sleeps = 4 + slept });
		end(turns);
		assert_int_equal(seen.turns, 1 + slept);
		turn_report_free(seen.report);
	}
}

static void samples_that_tell_neither_clock_nor_sleeps_are_of_no_turn(void **state)
{
	struct turns *turns = begin();

	(void)state;
	look(turns, (struct look){ 1000, THREAD_IDLE, 0, NULL, .sleeps = 1 });
	look(turns, (struct look){ 1010, THREAD_RUNNING, 11, NULL, .loop_ms = 0 });
	look(turns, (struct look){ 1100, THREAD_RUNNING, 11, NULL, .loop_ms = 0 });
	look(turns, (struct look){ 1200, THREAD_IDLE, 0, NULL, .sleeps = 3 });
	end(turns);
	assert_int_equal(seen.turns, 0);
	turn_report_free(seen.report);
}

/* Samples wait until the length of their turn is known: what they point to is copied. */
static void queued_samples_keep_their_names_and_frames(void **state)
{
	char process[] = "nginx", thread[100];
	struct frame frame = { .function = NULL, .line = 15 };
	struct sample sample = { .time_ns = 1000 * (uint64_t)MS,
				 .loop_ns = 999 * (uint64_t)MS,
				 .pid = 7,
				 .tid = 7,
				 .process_name = process,
				 .thread_name = thread,
				 .frames = &frame,
				 .frame_count = 1 };
	struct turns *turns = begin();
	json_t *json;

	(void)state;
	memset(thread, 't', sizeof(thread));
	thread[sizeof(thread) - 1] = '\0'; /* longer than the kernel's names */
	frame.function = handler;
	assert_int_equal(turns_add(turns, &sample), 0);
	assert_int_equal(seen.samples, 0);
	process[0] = thread[0] = 'x';
	frame.line = 99;
	look(turns, (struct look){ 1100, THREAD_RUNNING, 15, NULL, .loop_ms = 999 });
	assert_int_equal(seen.samples, 1);
	assert_string_equal(seen.names[0], "nginx");
	thread[0] = 't';
	thread[63] = '\0';
	assert_string_equal(seen.names[1], thread);
	end(turns);
	assert_string_equal(seen.names[0], "-");
	json = turn_report_json(seen.report);
	assert_int_equal(json_array_size(json_object_get(json, "lines")), 1);
	assert_int_equal(number(line_at(json, 0), "line"), 15);
	json_decref(json);
	turn_report_free(seen.report);
}

/* What a table with five such functions takes, that differ by their lines. */
static size_t size_of_five(const struct function *function)
{
	struct functions *functions = functions_new();
	struct function copy = *function;
	size_t size;

	assert_non_null(functions);
	for (copy.firstline = 0; copy.firstline < 5; copy.firstline++)
		assert_non_null(functions_intern(functions, &copy));
	size = functions_size(functions);
	functions_free(functions);
	return size;
}

/* Others are dropped while a turn lasts. */
static void functions_of_queued_samples_are_kept(void **state)
{
	struct functions *functions = functions_new();
	struct function function = { .kind = FRAME_LUA, .file = "@app.lua" };
	struct turns *turns = begin();
	const struct function *kept[5];
	struct frame frames[2];

	(void)state;
	assert_non_null(functions);
	for (uint32_t i = 0; i < 5; i++) {
		function.firstline = i;
		kept[i] = functions_intern(functions, &function);
		assert_non_null(kept[i]);
	}
	for (uint64_t i = 0; i < 2; i++) {
		struct sample sample = { .time_ns = (1000 + i) * MS,
					 .loop_ns = 999 * (uint64_t)MS,
					 .pid = 7,
					 .tid = 7,
					 .frames = frames,
					 .frame_count = 2 };

		frames[0] = (struct frame){ .function = kept[2 * i] };
		frames[1] = (struct frame){ .function = kept[2 * i + 1] };
		sample.wait = i == 1 ? kept[4] : NULL;
		assert_int_equal(turns_add(turns, &sample), 0);
	}
	function.firstline = 5;
	assert_non_null(functions_intern(functions, &function));
	turns_keep_functions(turns);
	functions_drop_others(functions);
	assert_int_equal(functions_size(functions), size_of_five(&function));
	for (uint32_t i = 0; i < 5; i++) {
		function.firstline = i;
		assert_ptr_equal(functions_intern(functions, &function), kept[i]);
	}
	turns_free(turns);
	functions_free(functions);
	turn_report_free(seen.report);
}

static void errors_of_taking_are_passed_on(void **state)
{
	struct turns *turns = begin();

	(void)state;
	seen.take_error = -EIO;
	seen.refuse_from = seen.refusals = 1;
	look(turns, (struct look){ 1000, THREAD_RUNNING, 15, &reader, .loop_ms = 999 });
	assert_int_equal(turns_add(turns, &(struct sample){ .time_ns = 1500 * (uint64_t)MS,
							    .tid = 7,
							    .loop_ns = 999 * (uint64_t)MS }),
			 -EIO);
	turns_free(turns);
	turn_report_free(seen.report);
	turns_free(NULL);
}

/* A short turn of another thread, of which nobody knows before the end, keeps five samples of a long one. */
static void end_with_refusals(int take_error, unsigned refuse_from, unsigned refusals, struct told *ret_told)
{
	struct turns *turns = begin();

	look(turns, (struct look){ 999, THREAD_RUNNING, 15, &reader, .loop_ms = 998, .tid = 8 });
	for (unsigned i = 0; i < 5; i++)
		look(turns, (struct look){ 1000 + i * 3, THREAD_RUNNING, 15, &reader, .loop_ms = 985 });
	assert_int_equal(seen.samples, 0);
	seen.take_error = take_error;
	seen.refuse_from = refuse_from;
	seen.refusals = refusals;
	*ret_told = (struct told){ 0 };
	ret_told->error = turns_finish(turns, &ret_told->lost);
	turns_free(turns);
	turn_report_free(seen.report);
}

static void what_is_refused_at_the_end_keeps_no_other_sample_back(void **state)
{
	static const struct {
		int error;
		unsigned refuse_from, refusals;
		struct told told;
		unsigned samples, turns; /* handed on */
	} cases[] = {
		{ -E2BIG, 2, 2, { 0, 2 }, 5, 2 },
		{ -ENOMEM, 1, 3, { -ENOMEM, 3 }, 5, 2 },
		/* A turn whose last sample is refused is over, too. */
		{ -E2BIG, 5, 1, { 0, 1 }, 5, 2 },
		/* What cannot be written ends it: that one and those behind it are lost. */
		{ -EIO, 3, 1, { -EIO, 3 }, 3, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct told told;

		end_with_refusals(cases[i].error, cases[i].refuse_from, cases[i].refusals, &told);
		assert_int_equal(told.error, cases[i].told.error);
		assert_int_equal(told.lost, cases[i].told.lost);
		assert_int_equal(seen.samples, cases[i].samples);
		assert_int_equal(seen.turns, cases[i].turns);
	}
}

static void what_is_open_is_freed(void **state)
{
	struct turns *turns = begin();

	(void)state;
	look(turns, (struct look){ 1000, THREAD_RUNNING, 15, &reader, .loop_ms = 999 });
	look(turns, (struct look){ 1010, THREAD_RUNNING, 15, &reader, .loop_ms = 999 });
	look(turns, (struct look){ 1020, THREAD_RUNNING, 15, &reader, .loop_ms = 999, .tid = 8 });
	turns_free(turns);
	turn_report_free(seen.report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_waits_for_events_is_a_loop),
		cmocka_unit_test(a_thread_beside_the_loop_has_no_turns),
		cmocka_unit_test(a_clock_of_the_loop_tells_turns_apart),
		cmocka_unit_test(waiting_for_a_cpu_is_told_apart),
		cmocka_unit_test(sleeps_tell_turns_apart_elsewhere),
		cmocka_unit_test(turns_without_sleeps_may_be_several),
		cmocka_unit_test(loops_do_not_get_mixed_up),
		cmocka_unit_test(what_goes_on_at_the_end_counts),
		cmocka_unit_test(a_turn_of_the_threshold_is_long),
		cmocka_unit_test(ends_that_are_not_known_are_between_two_looks),
		cmocka_unit_test(a_clock_that_is_no_later_than_the_last_look_tells_no_begin),
		cmocka_unit_test(half_a_step_of_the_clock_is_the_same_turn_and_more_is_another),
		cmocka_unit_test(a_turn_is_long_from_the_threshold_on_while_it_lasts),
		cmocka_unit_test(sleeps_tell_turns_apart_where_one_look_has_no_clock),
		cmocka_unit_test(samples_that_tell_neither_clock_nor_sleeps_are_of_no_turn),
		cmocka_unit_test(queued_samples_keep_their_names_and_frames),
		cmocka_unit_test(functions_of_queued_samples_are_kept),
		cmocka_unit_test(errors_of_taking_are_passed_on),
		cmocka_unit_test(what_is_refused_at_the_end_keeps_no_other_sample_back),
		cmocka_unit_test(what_is_open_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
