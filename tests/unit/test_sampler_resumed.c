/* SPDX-License-Identifier: MIT */
/*
 * Runs of a sampler that lets go of its targets and comes back: which of them it looks for, and what is the
 * result.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/proc/process.h"
#include "src/sampler/sampler_resumed.h"
#include "tests/unit/instead_of.h"

enum { FIRST = 100, PIDS = 3, RUNS_MAX = 4, COMMAND = 200 };

static const uint64_t second = NS_PER_SECOND;

/* Each run: what comes of it, and how long it takes; and what it was asked for. */
static struct run {
	struct sampler_result result;
	uint64_t opens_ns, takes_ns, closes_ns;
	pid_t pids[PIDS];
	size_t pid_count;
	pid_t launched_pid;
	uint64_t duration_ns;
} runs[RUNS_MAX];
static size_t run_count;

static uint64_t now_ns, away_ns;
static uint64_t started[PIDS]; /* when each process started, in ticks; 0: it is none */
static bool zombies[PIDS];
static bool comes_back;
static pid_t in_exec;
static pid_t reused; /* while ljspy is away, another process gets this id */
static struct sampler_options options;
static struct sampler_result result;
static struct sampler_result so_far; /* as told by progress */
static unsigned int absences, progresses, takes, keeps;
static bool is_enough; /* what progress says */

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	(void)clock;
	*ret_time = (struct timespec){ .tv_sec = (time_t)(now_ns / NS_PER_SECOND),
				       .tv_nsec = (long)(now_ns % NS_PER_SECOND) };
	return 0;
}

INSTEAD_OF(process_start);
uint64_t __wrap_process_start(pid_t pid)
{
	assert_int_not_equal(pid, in_exec); /* it would wait for ever */
	return zombies[pid - FIRST] ? 0 : started[pid - FIRST];
}

INSTEAD_OF(process_is_in_exec);
bool __wrap_process_is_in_exec(pid_t pid)
{
	return pid == in_exec;
}

INSTEAD_OF(sampler_run);
void __wrap_sampler_run(const struct sampler_options *given, struct sampler_result *ret_result)
{
	struct run *run = &runs[run_count++];

	assert_in_range(run_count, 1, RUNS_MAX);
	run->pid_count = given->pid_count;
	for (size_t i = 0; i < given->pid_count; i++)
		run->pids[i] = given->pids[i];
	run->launched_pid = given->launched_pid;
	run->duration_ns = given->duration_ns;
	now_ns += run->opens_ns;
	run->result.begin_ns = run->takes_ns ? now_ns : 0;
	now_ns += run->takes_ns;
	given->take(given->context, NULL);
	if (given->keep)
		given->keep(given->context);
	*ret_result = run->result;
	if (!given->progress(given->context, &ret_result->figures))
		ret_result->end = SAMPLER_TOLD_TO_END;
	ret_result->figures.duration_ns = run->takes_ns;
	now_ns += run->closes_ns;
}

static bool stay_away(void *context)
{
	(void)context;
	absences++;
	now_ns += away_ns;
	if (reused)
		started[reused - FIRST]++;
	return comes_back;
}

static bool progress(void *context, const struct sampler_result *told)
{
	assert_ptr_equal(context, &runs);
	so_far = *told;
	progresses++;
	return !is_enough;
}

static void take(void *context, const struct sample *sample)
{
	(void)sample;
	assert_ptr_equal(context, &options);
	takes++;
}

static void keep(void *context)
{
	assert_ptr_equal(context, &options);
	keeps++;
}

/* Two runs, the first of which lets go. */
static int begin(void **state)
{
	static const pid_t pids[PIDS] = { FIRST, FIRST + 1, FIRST + 2 };

	(void)state;
	memset(runs, 0, sizeof(runs));
	run_count = absences = progresses = takes = keeps = 0;
	now_ns = 50 * second;
	away_ns = 3 * second;
	comes_back = true;
	is_enough = false;
	reused = in_exec = 0;
	for (size_t i = 0; i < PIDS; i++) {
		started[i] = 1000 + i;
		zombies[i] = false;
	}
	for (size_t i = 0; i < RUNS_MAX; i++)
		runs[i] = (struct run){ .result = { .end = SAMPLER_DURATION_OVER }, .takes_ns = 2 * second };
	runs[0].result.end = SAMPLER_LET_GO;
	options = (struct sampler_options){
		.pids = pids, .pid_count = PIDS, .duration_ns = 10 * second, .take = take, .context = &options
	};
	return 0;
}

static void run(void)
{
	static const struct sampler_breaks breaks = { .stay_away = stay_away,
						      .progress = progress,
						      .context = &runs };

	sampler_run_resumed(&options, &breaks, &result);
}

static void it_comes_back_for_the_time_that_is_left(void **state)
{
	(void)state;
	options.keep = keep;
	run();
	assert_int_equal(absences, 1);
	assert_int_equal(run_count, 2);
	assert_int_equal(runs[0].duration_ns, 10 * second);
	assert_int_equal(runs[1].duration_ns, 5 * second);
	assert_int_equal(runs[1].pid_count, PIDS);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_int_equal(result.figures.duration_ns, 7 * second);
	assert_int_equal(takes, 2);
	assert_int_equal(keeps, 2);
}

/* To get to know the targets, and to let go of them, is no part of the recording; to come back is. */
static void the_duration_is_of_what_is_recorded(void **state)
{
	(void)state;
	runs[0].opens_ns = 4 * second;
	runs[1].opens_ns = second;
	runs[1].closes_ns = 5 * second;
	run();
	assert_int_equal(run_count, 2);
	assert_int_equal(runs[1].duration_ns, 5 * second);
	assert_int_equal(result.figures.duration_ns, 8 * second);
	/* No run may ever begin. */
	begin(state);
	runs[0].opens_ns = 4 * second;
	runs[0].takes_ns = 0;
	runs[0].result.end = SAMPLER_INTERRUPTED;
	run();
	assert_int_equal(run_count, 1);
	assert_int_equal(result.figures.duration_ns, 0);
}

static void there_is_no_run_when_no_time_is_left(void **state)
{
	(void)state;
	away_ns = 8 * second;
	run();
	assert_int_equal(run_count, 1);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	/* Without a limit there is always time. */
	begin(state);
	options.duration_ns = 0;
	away_ns = 1000 * second;
	run();
	assert_int_equal(run_count, 2);
	assert_int_equal(runs[1].duration_ns, 0);
}

static void it_may_let_go_more_than_once(void **state)
{
	(void)state;
	options.duration_ns = 100 * second;
	runs[0].result.figures.samples = 1;
	runs[1].result.figures.samples = 2;
	runs[2].result.figures.samples = 4;
	runs[1].result.end = SAMPLER_LET_GO;
	run();
	assert_int_equal(run_count, 3);
	assert_int_equal(absences, 2);
	assert_int_equal(runs[2].duration_ns, 90 * second);
	assert_int_equal(result.figures.samples, 7);
}

static void it_is_interrupted_if_it_is_not_to_come_back(void **state)
{
	(void)state;
	comes_back = false;
	run();
	assert_int_equal(run_count, 1);
	assert_int_equal(result.end, SAMPLER_INTERRUPTED);
}

static void another_process_of_the_same_id_is_not_looked_at(void **state)
{
	(void)state;
	reused = FIRST + 1;
	run();
	assert_int_equal(runs[1].pid_count, 2);
	assert_int_equal(runs[1].pids[0], FIRST);
	assert_int_equal(runs[1].pids[1], FIRST + 2);
}

static bool stay_away_while_one_loads_its_program(void *context)
{
	in_exec = in_exec ? 0 : FIRST + 1;
	return stay_away(context);
}

static void one_in_the_middle_of_an_execve_is_still_there(void **state)
{
	const struct sampler_breaks breaks = { .stay_away = stay_away_while_one_loads_its_program };

	(void)state;
	sampler_run_resumed(&options, &breaks, &result);
	assert_int_equal(runs[1].pid_count, PIDS);
	begin(state);
	in_exec = FIRST + 1;
	sampler_run_resumed(&options, &breaks, &result);
	assert_int_equal(runs[1].pid_count, PIDS);
}

static bool stay_away_while_all_end(void *context)
{
	for (size_t i = 0; i < PIDS; i++)
		zombies[i] = true;
	return stay_away(context);
}

static void it_ends_when_all_targets_ended_meanwhile(void **state)
{
	const struct sampler_breaks breaks = { .stay_away = stay_away_while_all_end };

	(void)state;
	sampler_run_resumed(&options, &breaks, &result);
	assert_int_equal(run_count, 1);
	assert_int_equal(result.end, SAMPLER_TARGETS_ENDED);
	/* Unless it is to wait for others. */
	begin(state);
	options.awaits = true;
	sampler_run_resumed(&options, &breaks, &result);
	assert_int_equal(run_count, 2);
	assert_int_equal(runs[1].pid_count, 0);
}

static void the_command_is_the_one_that_an_earlier_run_started(void **state)
{
	char *const command[] = { (char[]){ "luajit" }, NULL };

	(void)state;
	options.pid_count = 0;
	options.launch = command;
	runs[0].result.launched = true;
	runs[0].result.pid = COMMAND;
	run();
	assert_int_equal(run_count, 2);
	assert_int_equal(runs[0].launched_pid, 0);
	assert_int_equal(runs[1].launched_pid, COMMAND);
	assert_true(result.launched);
	assert_false(result.exit_known);
}

/* Its children may live on, and be sampled again. */
static void the_end_of_the_command_is_known_whichever_run_saw_it(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		begin(state);
		runs[i].result.exit_known = true;
		runs[i].result.exit_status = 3 << 8;
		run();
		assert_int_equal(run_count, 2);
		assert_true(result.exit_known);
		assert_int_equal(result.exit_status, 3 << 8);
	}
}

/*---- Results ----*/

static void results_are_those_of_all_runs(void **state)
{
	(void)state;
	runs[0].result.figures = (struct figures){ .samples = 10,
						   .target_cpu_ns = 100,
						   .rate_reached_hz = 5 };
	runs[1].result.figures = (struct figures){ .samples = 60,
						   .target_cpu_ns = 70,
						   .rate_reached_hz = 20 };
	runs[0].result.saw_luajit = runs[0].result.has_attached = true;
	snprintf(runs[0].result.layout, sizeof(runs[0].result.layout), "first");
	snprintf(runs[1].result.layout, sizeof(runs[1].result.layout), "second");
	snprintf(runs[0].result.roots, sizeof(runs[0].result.roots), "/a/;");
	snprintf(runs[0].result.other_lua, sizeof(runs[0].result.other_lua), "5.1");
	runs[0].result.unknown_pid = 9;
	snprintf(runs[0].result.unknown_reason, sizeof(runs[0].result.unknown_reason), "no row");
	runs[1].result.unknown_pid = 10;
	runs[0].result.left_out = 2;
	runs[0].result.left_out_pid = 31;
	runs[0].result.left_out_error = -EPERM;
	runs[1].result.left_out = 1;
	runs[1].result.left_out_pid = 32;
	runs[0].result.unsearched = 2;
	runs[0].result.unsearched_pid = 41;
	runs[1].result.unsearched = 1;
	runs[1].result.unsearched_pid = 42;
	runs[0].result.refused = (struct sampler_noted){ .count = 1, .more = 3, .at[0] = { .pid = 31 } };
	run();
	assert_int_equal(result.refused.count, 1);
	assert_int_equal(result.refused.at[0].pid, 31);
	assert_int_equal(result.refused.more, 3);
	assert_int_equal(result.figures.samples, 70);
	assert_int_equal(result.figures.target_cpu_ns, 170);
	/* Two seconds and three by the samples' clock. */
	assert_true(fabs(result.figures.rate_reached_hz - 14) < 0.001);
	assert_true(result.saw_luajit && result.has_attached);
	/* What was found first stays. */
	assert_string_equal(result.layout, "first");
	assert_string_equal(result.other_lua, "5.1");
	assert_int_equal(result.unknown_pid, 9);
	assert_string_equal(result.unknown_reason, "no row");
	assert_int_equal(result.left_out, 3);
	assert_int_equal(result.left_out_pid, 31);
	assert_int_equal(result.left_out_error, -EPERM);
	assert_int_equal(result.unsearched, 3);
	assert_int_equal(result.unsearched_pid, 41);
	assert_string_equal(result.roots, "/a/;");
}

static void what_a_later_run_finds_is_in_the_result(void **state)
{
	(void)state;
	runs[1].result.figures = (struct figures){ .samples = 60, .rate_reached_hz = 20 };
	runs[1].result.saw_luajit = true;
	snprintf(runs[1].result.layout, sizeof(runs[1].result.layout), "second");
	snprintf(runs[1].result.other_lua, sizeof(runs[1].result.other_lua), "5.4");
	runs[1].result.unknown_pid = 10;
	runs[1].result.left_out = 1;
	runs[1].result.left_out_pid = 32;
	runs[1].result.unsearched = 1;
	runs[1].result.unsearched_pid = 42;
	run();
	assert_true(result.saw_luajit);
	assert_string_equal(result.layout, "second");
	assert_string_equal(result.other_lua, "5.4");
	assert_int_equal(result.unknown_pid, 10);
	assert_int_equal(result.left_out, 1);
	assert_int_equal(result.left_out_pid, 32);
	/* The first run has no samples, whose rate is unknown. */
	assert_true(fabs(result.figures.rate_reached_hz - 20) < 0.001);
	assert_int_equal(result.unsearched, 1);
	assert_int_equal(result.unsearched_pid, 42);
}

/* Some targets may end before a later run, and others begin. */
static void package_roots_are_those_of_all_runs(void **state)
{
	(void)state;
	options.duration_ns = 100 * second;
	runs[1].result.end = SAMPLER_LET_GO;
	snprintf(runs[0].result.roots, sizeof(runs[0].result.roots), "/a/;/b/;");
	snprintf(runs[1].result.roots, sizeof(runs[1].result.roots), "/b/;/c/;");
	run();
	assert_int_equal(run_count, 3);
	assert_string_equal(result.roots, "/a/;/b/;/c/;");
}

static void progress_tells_of_all_runs(void **state)
{
	(void)state;
	runs[0].result.figures.samples = 10;
	runs[1].result.figures.samples = 60;
	run();
	assert_int_equal(progresses, 2);
	assert_int_equal(so_far.figures.samples, 70);
	assert_int_equal(so_far.figures.duration_ns, 7 * second);
	begin(state);
	is_enough = true;
	runs[0].result.end = SAMPLER_DURATION_OVER;
	run();
	assert_int_equal(result.end, SAMPLER_TOLD_TO_END);
	assert_int_equal(absences, 0);
}

static void a_target_that_cannot_be_had_again_is_left_out(void **state)
{
	(void)state;
	runs[1].result = (struct sampler_result){ .end = SAMPLER_FAILED, .error = -EPERM, .pid = FIRST + 1 };
	runs[0].result.figures.samples = 10;
	run();
	assert_int_equal(result.end, SAMPLER_TARGETS_ENDED);
	assert_int_equal(result.figures.samples, 10);
	assert_int_equal(result.left_out, 1);
	assert_int_equal(result.left_out_pid, FIRST + 1);
	assert_int_equal(result.left_out_error, -EPERM);
	/* The run has counted it, and another one. */
	begin(state);
	runs[1].result = (struct sampler_result){
		.end = SAMPLER_FAILED, .error = -EPERM, .pid = FIRST, .left_out = 2, .left_out_pid = FIRST
	};
	run();
	assert_int_equal(result.left_out, 2);
	/* It has just ended. */
	begin(state);
	runs[1].result = (struct sampler_result){ .end = SAMPLER_FAILED, .error = -ESRCH, .pid = FIRST };
	run();
	assert_int_equal(result.end, SAMPLER_TARGETS_ENDED);
	assert_int_equal(result.left_out, 0);
	begin(state);
	runs[1].result = (struct sampler_result){ .end = SAMPLER_NO_LUAJIT, .pid = FIRST };
	run();
	assert_int_equal(result.end, SAMPLER_TARGETS_ENDED);
	assert_int_equal(result.left_out, 0);
	/* The first run says what went wrong. */
	begin(state);
	runs[0].result = (struct sampler_result){ .end = SAMPLER_FAILED, .error = -EPERM, .pid = FIRST };
	run();
	assert_int_equal(result.end, SAMPLER_FAILED);
	assert_int_equal(result.error, -EPERM);
}

/* The time that one of two runs sampled is not the time of both. */
static void the_rate_of_two_runs_is_known_if_both_are(void **state)
{
	static const struct figures known = { .samples = 60, .rate_reached_hz = 20 },
				    unknown = { .samples = 60 };
	struct sampler_result sum = { 0 };

	(void)state;
	for (int which = 0; which < 4; which++) {
		const struct sampler_result before = { .figures = which & 1 ? known : unknown },
					    run = { .figures = which & 2 ? known : unknown };

		sampler_add_results(&before, &run, &sum);
		assert_int_equal(sum.figures.samples, 120);
		assert_true(fabs(sum.figures.rate_reached_hz - (which == 3 ? 20 : 0)) < 0.001);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(it_comes_back_for_the_time_that_is_left),
		TEST(the_duration_is_of_what_is_recorded),
		TEST(there_is_no_run_when_no_time_is_left),
		TEST(it_may_let_go_more_than_once),
		TEST(the_rate_of_two_runs_is_known_if_both_are),
		TEST(it_is_interrupted_if_it_is_not_to_come_back),
		TEST(another_process_of_the_same_id_is_not_looked_at),
		TEST(one_in_the_middle_of_an_execve_is_still_there),
		TEST(it_ends_when_all_targets_ended_meanwhile),
		TEST(the_command_is_the_one_that_an_earlier_run_started),
		TEST(the_end_of_the_command_is_known_whichever_run_saw_it),
		TEST(results_are_those_of_all_runs),
		TEST(what_a_later_run_finds_is_in_the_result),
		TEST(package_roots_are_those_of_all_runs),
		TEST(progress_tells_of_all_runs),
		TEST(a_target_that_cannot_be_had_again_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
