/* SPDX-License-Identifier: MIT */
/*
 * Looks at a machine of which everything is known: when they come, what they find, and what goes wrong with
 * them.
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "tests/unit/sampled_machine.h"

static const struct made_up_thread busy = { .run_ns = NS_PER_SECOND };

/* The test goes on with a machine of its own. */
static struct made_up_process *begin_again(void **state, struct made_up_thread thread)
{
	forget(state);
	make_up(state);
	return add(1, thread);
}

/*---- Late looks ----*/

static void a_look_that_comes_too_late_takes_no_sample(void **state)
{
	struct made_up_process *process = add(1, bursts);
	uint64_t begin_ns, used_ns;

	machine.oversleep_one_in = 1;
	machine.oversleep_ns = 150 * 1000;
	run();
	assert_true(sum_of(process, 0)->samples > 300);

	process = begin_again(state, bursts);
	machine.oversleep_one_in = 1;
	machine.oversleep_ns = 250 * 1000;
	begin_ns = run();
	used_ns = made_up_cpu_ns(process, machine.now_ns) - made_up_cpu_ns(process, begin_ns);
	/* But for the last look: then any place is better than none. */
	assert_in_range(sum_of(process, 0)->samples, 0, 1);
	assert_near(sum_of(process, 0)->cpu_ns + of_no_thread.cpu_ns, used_ns, TOLERANCE_NS);
	assert_near(result.figures.missed_ticks, used_ns / period_ns, 20);
}

static void a_look_is_late_by_a_wait_or_by_other_work(void **state)
{
	struct sampler sampler = { .tracer = tracer_new() };
	struct own_turn *turn = tracer_turn(sampler.tracer);
	const uint64_t due_ns = UINT64_C(77) * NS_PER_SECOND;

	(void)state;
	assert_false(target_is_late(&sampler, due_ns, due_ns));
	assert_false(target_is_late(&sampler, due_ns, due_ns + MS / 2));
	assert_true(target_is_late(&sampler, due_ns, due_ns + MS / 2 + 1));
	turn->late_ns = MS / 5;
	assert_false(target_is_late(&sampler, due_ns, due_ns));
	turn->late_ns++;
	assert_true(target_is_late(&sampler, due_ns, due_ns));
}

static void a_late_look_does_not_say_that_nothing_runs(void **state)
{
	struct thread_record records[2] = { 0 };
	struct known_thread known[] = { { NULL, &records[0] }, { NULL, &records[1] } };
	struct target target = { .known = known, .lively_count = 1, .known_count = 2 };

	(void)state;
	assert_false(target_is_up(&target));
	target.is_late = true;
	assert_true(target_is_up(&target));
	target.is_late = false;
	/* Threads that were not looked at do not count. */
	records[1].presence = PRESENCE_ON_CPU;
	assert_false(target_is_up(&target));
	records[0].presence = PRESENCE_PUT_OFF;
	assert_true(target_is_up(&target));
}

/*---- Times of samples ----*/

static struct {
	uint64_t last_ns, least_gap_ns;
	unsigned long count;
	uint32_t line;
} seen;

static void see_times(const struct sample *sample)
{
	if (!sample->tid)
		return;
	assert_int_equal(sample->wall_ns, sample->time_ns - seen.last_ns);
	/* The last look comes at the end. */
	if (seen.count++ && machine.now_ns < STARTED_AT_NS + options.duration_ns &&
	    sample->time_ns - seen.last_ns < seen.least_gap_ns)
		seen.least_gap_ns = sample->time_ns - seen.last_ns;
	seen.last_ns = sample->time_ns;
	seen.line = sample->frames[0].line;
}

static void see(void)
{
	memset(&seen, 0, sizeof(seen));
	seen.last_ns = machine.now_ns;
	seen.least_gap_ns = UINT64_MAX;
	each_sample = see_times;
}

static void a_sample_of_cpu_time_tells_the_time_since_the_last_one(void **state)
{
	struct made_up_process *process = add(1, bursts);

	(void)state;
	see();
	run();
	assert_true(seen.count > 300);
	assert_int_equal(sum_of(process, 0)->wall_ns, seen.last_ns - STARTED_AT_NS);
}

/* Else ljspy would see what runs right after a hold more often than the rest. */
static void the_next_look_is_put_off_for_as_long_as_a_thread_was_held(void **state)
{
	add(1, busy);
	see();
	machine.copy_takes_ns = 3 * MS;
	run();
	assert_true(seen.count > 300);
	assert_true(seen.least_gap_ns >= period_ns / 2 + 3 * MS);
	assert_true(seen.least_gap_ns < period_ns / 2 + 5 * MS);
	begin_again(state, busy);
	see();
	run();
	assert_true(seen.least_gap_ns >= period_ns / 2);
	assert_true(seen.least_gap_ns < period_ns / 2 + MS);
}

/* What a thread waits for a CPU after a hold is the hold's doing, too. */
static void a_wait_for_a_cpu_after_a_hold_puts_off_the_next_look(void **state)
{
	/* It has had no other turn when ljspy looks: it still waits. */
	add(1, (struct made_up_thread){ .run_ns = UINT64_C(100) * NS_PER_SECOND });
	see();
	machine.unwind_takes_ns = 3 * MS;
	run();
	assert_true(seen.count > 300);
	assert_true(seen.least_gap_ns >= period_ns / 2 + 3 * MS);
	/* It lost its CPU before it stopped, and waited for another turn. */
	begin_again(state, (struct made_up_thread){ .wait_ns = 3 * MS, .run_ns = MS });
	see();
	machine.stop_takes_ns = 4 * MS;
	run();
	assert_true(seen.count > 100);
	assert_true(seen.least_gap_ns >= period_ns / 2 + 3 * MS);
	/* It has waited and runs again, after one cycle. */
	begin_again(state, (struct made_up_thread){ .wait_ns = 3 * MS, .run_ns = MS });
	see();
	machine.unwind_takes_ns = 4 * MS;
	run();
	assert_true(seen.count > 100);
	assert_true(seen.least_gap_ns >= period_ns / 2 + 3 * MS);
}

/*---- Holds ----*/

static void a_hold_lasts_until_the_thread_runs_again(void **state)
{
	add(1, busy);
	machine.copy_takes_ns = 200 * 1000;
	machine.resume_takes_ns = 40 * 1000;
	run();
	assert_in_range(histogram_percentile(&result.figures.pause_ns, 500), 230 * 1000, 250 * 1000);
	/* It ran before ljspy had a CPU again. */
	begin_again(state, busy);
	machine.copy_takes_ns = 200 * 1000;
	machine.resume_takes_ns = 300 * 1000;
	run();
	assert_true(machine.stops > 300);
	assert_in_range(histogram_percentile(&result.figures.pause_ns, 500), 190 * 1000, 210 * 1000);
}

static void a_thread_whose_registers_cannot_be_read_has_no_sample(void **state)
{
	struct made_up_process *process = add(1, bursts);

	machine.registers_error = -ESRCH;
	run();
	/* It is let go all the same. */
	assert_true(machine.stops > 100);
	assert_int_equal(sum_of(process, 0)->samples, 0);
	assert_int_equal(of_no_thread.samples, 1);
	assert_int_equal(result.figures.lost[LOST_ASLEEP], 1);
	assert_near(of_no_thread.cpu_ns, result.figures.target_cpu_ns, 1);
	/* One that works to the end does not sleep. */
	begin_again(state, busy);
	machine.registers_error = -ESRCH;
	run();
	assert_int_equal(result.figures.lost[LOST_ASLEEP], 0);
	assert_int_equal(result.figures.lost[LOST_NOT_STOPPED], 1);
}

/* It is well sampled, and the time of no sample is another's, which sleeps. */
static void whose_time_has_no_sample_says_why(void **state)
{
	struct made_up_process *process = begin_again(state, busy);

	process->threads[1] = bursts;
	process->threads[1].hides_registers = true;
	process->thread_count = 2;
	run();
	assert_true(sum_of(process, 0)->samples > 100);
	assert_int_equal(sum_of(process, 1)->samples, 0);
	assert_int_equal(result.figures.lost[LOST_ASLEEP], 1);
	assert_int_equal(result.figures.lost[LOST_NOT_STOPPED], 0);
}

static void a_stack_that_finds_no_memory_is_lost(void **state)
{
	struct made_up_process *process = add(1, bursts);

	(void)state;
	machine.unwind_error = -ENOMEM;
	machine.phase = "content";
	options.wall_clock = true;
	run();
	assert_true(sum_of(process, 0)->samples > 600);
	assert_near(result.figures.lost[LOST_OUT_OF_MEMORY], sum_of(process, 0)->samples, 3);
	assert_null(sum_of(process, 0)->told[THREAD_RUNNING].phase);
	assert_int_equal(machine.collectors, 0);
}

/* It had a CPU when ljspy looked; what it did from there to its sleep is unknown. */
static void a_thread_that_fell_asleep_before_it_stopped_is_missed(void **state)
{
	struct made_up_process *process = add(1, bursts);

	options.wall_clock = true;
	machine.fell_asleep = true;
	machine.stop_takes_ns = bursts.run_ns + bursts.sleep_ns;
	run();
	assert_true(machine.stops > 100);
	assert_in_range(sum_of(process, 0)->state_samples[THREAD_RUNNING], 0, 1);
	assert_true(result.figures.missed_ticks >= machine.stops);
	/* It stopped where it was seen. */
	process = begin_again(state, bursts);
	options.wall_clock = true;
	machine.fell_asleep = true;
	run();
	assert_near(sum_of(process, 0)->state_samples[THREAD_RUNNING], machine.stops, 1);
	assert_int_equal(result.figures.missed_ticks, 0);
}

static void see_collector(const struct sample *sample)
{
	if (sample->thread_state != THREAD_RUNNING || !sample->tid)
		return;
	assert_int_equal(machine.collected_at_ns, machine.last_stop_ns);
	seen.count++;
}

/* Later on it holds for what the thread has done since: unwinding takes a while. */
static void a_look_at_the_collector_is_as_old_as_the_hold(void **state)
{
	(void)state;
	add(1, busy);
	see();
	each_sample = see_collector;
	machine.copy_takes_ns = machine.resume_takes_ns = MS;
	run();
	assert_true(seen.count > 300);
}

static void a_thread_is_looked_at_again_after_a_turn_is_used_up(void **state)
{
	struct made_up_process *process = add(2, bursts);

	options.wall_clock = true;
	machine.turn_is_used_up = true;
	machine.renew_takes_ns = bursts.run_ns;
	run();
	/*
	 * Both have a CPU at the same times: the second one has left it when the first one's sample is taken.
	 */
	assert_true(sum_of(process, 0)->state_samples[THREAD_RUNNING] > 100);
	assert_in_range(sum_of(process, 1)->state_samples[THREAD_RUNNING], 0, 2);
	assert_true(result.figures.missed_ticks > 100);

	forget(state);
	make_up(state);
	process = add(2, busy);
	machine.turn_is_used_up = true;
	run();
	assert_near(sum_of(process, 0)->samples, sum_of(process, 1)->samples, 1);
	/* Before the looks, and before the second stop. */
	assert_near(machine.renewals, result.figures.samples, 6);
}

static void only_a_thread_that_had_a_cpu_is_rehearsed(void **state)
{
	struct made_up_process *process = add(1, bursts);

	(void)state;
	run();
	assert_near(machine.rehearsals, sum_of(process, 0)->samples, 2);
}

/* As many looks as at one that runs, but most of them end with the question whether it has run. */
static void what_has_not_run_since_the_last_look_is_not_looked_at_again(void **state)
{
	const struct made_up_thread waits = { .wait_ns = 400 * MS, .run_ns = 100 * MS };
	struct made_up_process *process = add(1, waits);

	run();
	assert_true(machine.run_counts > machine.waits / 2);
	assert_true(machine.measures < machine.waits / 2 + 2 * sum_of(process, 0)->samples);
	assert_near(sum_of(process, 0)->samples, result.figures.target_cpu_ns / period_ns, 10);
	assert_near(sum_of(process, 0)->cpu_ns + of_no_thread.cpu_ns, result.figures.target_cpu_ns,
		    TOLERANCE_NS);
	/* All are looked at where one of them runs, */
	process = begin_again(state, waits);
	process->threads[process->thread_count++] = busy;
	run();
	assert_int_equal(machine.run_counts, 0);
	/* ... where sleeps have samples, too, and where the kernel does not tell whether it has run. */
	begin_again(state, waits);
	options.wall_clock = true;
	run();
	assert_int_equal(machine.run_counts, 0);
	begin_again(state, waits);
	machine.counts_no_runs = true;
	run();
	assert_int_equal(machine.run_counts, 0);
}

static void what_sleeping_threads_sleep_in_is_watched(void **state)
{
	struct made_up_process *process = add(1, busy);

	run();
	assert_in_range(machine.watched_sleeps, 0, 1); /* at the end */
	/* It runs between any two looks. */
	process = begin_again(state, (struct made_up_thread){ .run_ns = MS, .sleep_ns = 3 * MS });
	run();
	assert_near(machine.watched_sleeps, machine.waits - sum_of(process, 0)->samples, machine.waits / 20);
}

static void a_stack_that_is_nowhere_to_be_found_is_lost(void **state)
{
	struct made_up_process *process = add(2, bursts);

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		process->threads[i].nature = MAY_NOT_CALLS;
		process->threads[i].hides_stack = true;
	}
	run();
	/* LuaJIT tells where the first thread has its stack. */
	assert_true(sum_of(process, 0)->samples > 300);
	assert_int_equal(sum_of(process, 0)->lost_ns, 0);
	assert_true(sum_of(process, 1)->samples > 300);
	assert_int_equal(result.figures.lost[LOST_NOT_STOPPED], sum_of(process, 1)->samples);
}

/*---- The end ----*/

/* A time in which threads of these wait and runs are in the midst of waiting. */
static void end_at(uint64_t end_ns)
{
	options.duration_ns = end_ns - STARTED_AT_NS;
}

static void a_thread_that_waits_at_the_end_is_sampled_once_it_runs(void **state)
{
	const uint64_t end_ns = UINT64_C(2410) * MS;
	const struct made_up_process *process;

	add(1, (struct made_up_thread){ .wait_ns = 100 * MS, .run_ns = 100 * MS });
	end_at(end_ns);
	see();
	run();
	assert_int_equal(machine.awake_stops, 0);
	assert_in_range(seen.last_ns, end_ns + 90 * MS, end_ns + 93 * MS);
	assert_true(seen.count > 100);
	/* Longer than ljspy goes on looking: it is told to stop where it is, and does when it has a CPU. */
	process = begin_again(state, (struct made_up_thread){ .wait_ns = 300 * MS, .run_ns = 300 * MS });
	end_at(end_ns + 10 * MS);
	see();
	run();
	assert_int_equal(machine.awake_stops, 1);
	assert_in_range(seen.last_ns, UINT64_C(2700) * MS, UINT64_C(2700) * MS + 190 * MS);
	assert_in_range(seen.line, 0, 70);
	/* That sample has what ran since ljspy read the process's clock last. */
	assert_int_equal(of_no_thread.samples, 0);
	assert_int_equal(result.figures.target_cpu_ns, sum_of(process, 0)->cpu_ns);
	/* It waited for that CPU at the look, and so has not fallen asleep since. */
	begin_again(state, (struct made_up_thread){ .wait_ns = 300 * MS, .run_ns = 300 * MS });
	machine.fell_asleep = true;
	end_at(end_ns + 10 * MS);
	see();
	run();
	assert_int_equal(machine.awake_stops, 1);
	assert_in_range(seen.last_ns, UINT64_C(2700) * MS, UINT64_C(2700) * MS + 190 * MS);
}

static void a_thread_that_waits_for_long_at_the_end_is_not_awaited(void **state)
{
	const struct made_up_thread waits = { .wait_ns = UINT64_C(5) * NS_PER_SECOND,
					      .run_ns = NS_PER_SECOND };
	const uint64_t end_ns = UINT64_C(6001) * MS;

	add(1, waits);
	end_at(end_ns);
	run();
	assert_int_equal(machine.awake_stops, 1);
	assert_in_range(machine.now_ns, end_ns + 400 * MS, end_ns + 410 * MS);
	assert_int_equal(result.figures.lost[LOST_STOP_TIMED_OUT], 0);
	/* Where ljspy would have to wait for a CPU while it is held, it is read where it waits. */
	begin_again(state, waits);
	machine.cannot_be_first = true;
	end_at(end_ns);
	see();
	run();
	assert_int_equal(machine.awake_stops, 0);
	assert_in_range(seen.last_ns, end_ns + 200 * MS, end_ns + 210 * MS);
	assert_int_equal(result.figures.undisturbed, 0);
	/* One that has used no CPU time has nothing to tell. */
	begin_again(state, waits);
	end_at(end_ns / 2);
	run();
	assert_int_equal(result.figures.target_cpu_ns, 0);
	assert_int_equal(machine.awake_stops, 0);
}

static void at_the_end_calls_are_no_hindrance(void **state)
{
	static const enum may_stop natures[] = { MAY_NOT_WAITS, MAY_NOT_YET, MAY_NOT_CALLS_WAITING };

	for (size_t i = 0; i < sizeof(natures) / sizeof(natures[0]); i++) {
		struct made_up_process *process = begin_again(state, busy);

		process->threads[0].nature = natures[i];
		end_at(UINT64_C(1500) * MS);
		run();
		assert_int_equal(machine.stops, 0);
		assert_int_equal(sum_of(process, 0)->samples, 1);
		assert_int_equal(result.figures.undisturbed, 1);
		assert_near(sum_of(process, 0)->cpu_ns, UINT64_C(1493) * MS, 1);
		/* Each look before is missed once. */
		assert_near(result.figures.missed_ticks, UINT64_C(1493) * MS / period_ns, 20);
	}
}

static bool goes_on(void *context)
{
	const uint64_t *until_ns = context;

	return machine.now_ns < *until_ns;
}

static void ignore_rest(void *context, bool rests, uint64_t wait_ns)
{
	(void)context;
	(void)rests;
	(void)wait_ns;
}

static void no_thread_is_looked_at_once_ljspy_is_to_let_go(void **state)
{
	uint64_t until_ns = UINT64_C(3) * NS_PER_SECOND;
	const struct sampler_watch watch = { .may_go_on = goes_on,
					     .rests = ignore_rest,
					     .context = &until_ns };

	(void)state;
	add(1, busy);
	options.watch = &watch;
	run();
	assert_int_equal(result.end, SAMPLER_LET_GO);
	assert_true(machine.stops > 300);
	assert_true(machine.last_stop_ns < until_ns);
	assert_near(machine.now_ns, until_ns, 2 * period_ns);
}

/* The next run tells of it, and counts it once. */
static void one_that_refuses_is_not_left_out_of_a_run_that_lets_go(void **state)
{
	uint64_t until_ns = UINT64_C(3) * NS_PER_SECOND;
	const struct sampler_watch watch = { .may_go_on = goes_on,
					     .rests = ignore_rest,
					     .context = &until_ns };
	struct made_up_process *first = add(1, busy), *other = add(1, busy);
	const pid_t both[] = { first->pid, other->pid };

	(void)state;
	other->refusal = -EPERM;
	options.watch = &watch;
	options.pids = both;
	options.pid_count = 2;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_LET_GO);
	assert_int_equal(result.left_out, 0);
}

/*---- Rest ----*/

static const struct made_up_thread idle = { .run_ns = 10 * MS, .sleep_ns = UINT64_C(1000) * NS_PER_SECOND };

static void a_recording_is_as_long_as_it_is_to_be(void **state)
{
	(void)state;
	add(1, idle);
	options.duration_ns = UINT64_C(8300) * MS + 1;
	run();
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_int_equal(machine.now_ns, STARTED_AT_NS + options.duration_ns);
	assert_int_equal(result.figures.duration_ns, options.duration_ns);
}

static void a_target_rests_after_five_seconds_without_cpu_time(void **state)
{
	add(1, idle);
	options.duration_ns = UINT64_C(20) * NS_PER_SECOND;
	run();
	assert_in_range(machine.waits, 5 * RATE_HZ - 60, 5 * RATE_HZ + 80);
	/* Where it cannot have an alarm, looks go on; by the wall clock, it has samples. */
	for (int i = 0; i < 2; i++) {
		begin_again(state, idle);
		options.duration_ns = UINT64_C(20) * NS_PER_SECOND;
		machine.has_no_timers = i == 0;
		options.wall_clock = i == 1;
		run();
		assert_int_equal(machine.alarms, 0);
		assert_in_range(machine.waits, 19 * RATE_HZ, 21 * RATE_HZ);
	}
}

/* How often a target is asked for its CPU time that uses none, beside another one that runs. */
static unsigned long clock_reads_of_idle(void **state, uint64_t seconds)
{
	const struct made_up_process *at_rest = begin_again(state, idle), *other = add(1, busy);
	const pid_t both[] = { at_rest->pid, other->pid };

	options.duration_ns = seconds * NS_PER_SECOND;
	options.pids = both;
	options.pid_count = 2;
	sampler_run(&options, &result);
	assert_true(other->clock_reads > seconds * RATE_HZ / 2);
	return at_rest->clock_reads;
}

/* However often another target is looked at meanwhile. */
static void a_target_that_rests_is_asked_once_a_second(void **state)
{
	/* It rests after five seconds. */
	const unsigned long at_rest = clock_reads_of_idle(state, 6);

	assert_in_range(clock_reads_of_idle(state, 21) - at_rest, 14, 16);
}

/* On a machine that others share, some looks of each second come late. */
static void late_looks_keep_no_target_from_resting(void **state)
{
	(void)state;
	add(1, idle);
	options.duration_ns = UINT64_C(20) * NS_PER_SECOND;
	machine.oversleep_one_in = 20;
	machine.oversleep_ns = MS;
	run();
	assert_in_range(machine.waits, 4 * RATE_HZ, 6 * RATE_HZ);
}

/* It runs between two of the kernel's ticks, so its alarm never rings. */
static void a_target_that_no_alarm_reports_is_seen_by_its_clock(void **state)
{
	(void)state;
	add(1, (struct made_up_thread){ .begin_ns = MS, .run_ns = 2 * MS, .sleep_ns = UINT64_C(7998) * MS });
	options.duration_ns = UINT64_C(80) * NS_PER_SECOND;
	run();
	assert_int_equal(machine.alarms, 0);
	assert_in_range(machine.waits, 45 * RATE_HZ, 60 * RATE_HZ);
}

static void an_alarm_of_a_target_that_is_gone_means_nothing(void **state)
{
	static const int values[] = { -1, 1, 1000 };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct made_up_process *process = begin_again(state, bursts);

		machine.signal = SIGRTMIN;
		machine.signal_value = values[i];
		machine.signal_ns = UINT64_C(2) * NS_PER_SECOND;
		run();
		assert_int_equal(result.end, SAMPLER_DURATION_OVER);
		assert_true(sum_of(process, 0)->samples > 300);
	}
}

static void reports_of_threads_are_asked_for_now_and_then(void **state)
{
	(void)state;
	add(1, busy);
	run();
	assert_in_range(machine.polls, 10 * 15, 10 * 20 + 5);
	/* Once a second, what takes its time may be done. */
	assert_in_range(machine.times_taken, 10, 100);
}

/*---- Sleeps ----*/

static void what_a_thread_waits_for_says_whether_it_is_idle(void **state)
{
	static const struct function in_lua = { .kind = FRAME_LUA, .file = "@a.lua", .firstline = 3 };
	static const struct function main_chunk = { .kind = FRAME_LUA, .name = MAIN_CHUNK, .file = "@a.lua" };
	/* Of bytecode without debug info. */
	static const struct function stripped = { .kind = FRAME_LUA, .file = "=?" };
	static const struct function called = { .kind = FRAME_LUA, .name = "called", .file = "=?" };
	static const struct function in_c = { .kind = FRAME_NATIVE,
					      .name = MAIN_CHUNK,
					      .module = "made_up.so" };
	static const struct {
		enum wait_kind kind;
		const struct function *function;
		const char *phase;
		enum thread_state state;
	} cases[] = {
		{ WAIT_EVENTS, &in_lua, NULL, THREAD_IDLE },
		{ WAIT_EVENTS, &in_lua, "content", THREAD_BLOCKED },
		{ WAIT_TIME, &in_lua, NULL, THREAD_BLOCKED },
		{ WAIT_TIME, &stripped, NULL, THREAD_BLOCKED },
		{ WAIT_TIME, &called, NULL, THREAD_BLOCKED },
		{ WAIT_TIME, &main_chunk, NULL, THREAD_IDLE },
		{ WAIT_TIME, &in_c, NULL, THREAD_IDLE },
		{ WAIT_CONDITION, &in_c, NULL, THREAD_IDLE },
		{ WAIT_CONDITION, &main_chunk, NULL, THREAD_BLOCKED },
		{ WAIT_LOCK, &in_c, NULL, THREAD_BLOCKED },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made_up_process *process = begin_again(state, bursts);
		const struct sum *sum = sum_of(process, 0);

		process->threads[0].function = cases[i].function;
		machine.wait.kind = cases[i].kind;
		machine.phase = cases[i].phase;
		options.wall_clock = true;
		options.duration_ns = NS_PER_SECOND;
		run();
		assert_true(sum->state_samples[cases[i].state] > 100);
		assert_int_equal(sum->state_samples[THREAD_IDLE] + sum->state_samples[THREAD_BLOCKED],
				 sum->state_samples[cases[i].state]);
	}
	begin_again(state, bursts);
	machine.wait.kind = WAIT_EVENTS;
	machine.sleep_state = THREAD_UNINTERRUPTIBLE;
	options.wall_clock = true;
	run();
	assert_true(sums[0].state_samples[THREAD_UNINTERRUPTIBLE] > 300);
	assert_int_equal(sums[0].state_samples[THREAD_IDLE], 0);
}

static const struct function in_lua = { .kind = FRAME_LUA, .file = "@a.lua", .firstline = 3 };
static const struct function in_c = { .kind = FRAME_NATIVE, .name = "turn", .module = "made_up.so" };
static const struct wait locks[] = {
	{ .kind = WAIT_LOCK, .lock = 0x7000, .is_shared = true },
	{ .kind = WAIT_LOCK, .lock = 0x8000, .is_shared = true },
};
static const uint64_t for_ever = UINT64_C(3600) * NS_PER_SECOND;

/* Who holds the lock waits for events. One look that finds it otherwise may be between two turns. */
static void a_thread_that_waits_for_its_turn_is_idle(void **state)
{
	static const struct {
		const struct function *function;
		uint64_t events_end_ns;
		unsigned long but_one_in;
		enum wait_kind kind;
		enum thread_state state;
	} cases[] = {
		{ &in_c, UINT64_MAX, 0, WAIT_LOCK, THREAD_IDLE },
		{ &in_c, UINT64_MAX, 3, WAIT_LOCK, THREAD_IDLE },
		{ &in_c, 0, 0, WAIT_LOCK, THREAD_BLOCKED },
		{ &in_lua, UINT64_MAX, 0, WAIT_LOCK, THREAD_BLOCKED },
		{ &in_c, UINT64_MAX, 0, WAIT_FILE, THREAD_BLOCKED },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made_up_process *process = begin_again(state, bursts);
		const struct sum *sum = sum_of(process, 0);

		process->threads[0].function = cases[i].function;
		process->threads[0].sleep_ns = cases[i].but_one_in ? for_ever : bursts.sleep_ns;
		machine.wait = (struct wait){ .kind = cases[i].kind, .lock = 0x7000, .is_shared = true };
		machine.events_end_ns = cases[i].events_end_ns;
		machine.events_but_one_in = cases[i].but_one_in;
		options.wall_clock = true;
		options.duration_ns = NS_PER_SECOND;
		run();
		assert_true(sum->state_samples[cases[i].state] > 100);
		assert_int_equal(sum->state_samples[THREAD_IDLE] + sum->state_samples[THREAD_BLOCKED],
				 sum->state_samples[cases[i].state]);
	}
}

/* Each lock is asked about once in a look, whoever waits for it, and has its own look before. */
static void locks_are_told_apart(void **state)
{
	const struct made_up_thread sleeps = { .run_ns = MS, .sleep_ns = for_ever, .function = &in_c };
	struct made_up_process *process = begin_again(state, sleeps);

	process->thread_count = 4;
	for (size_t i = 0; i < process->thread_count; i++) {
		process->threads[i] = sleeps;
		process->threads[i].wait = &locks[i % 2];
	}
	machine.events_end_ns = UINT64_MAX;
	machine.events_but_one_in = 3;
	options.wall_clock = true;
	run();
	assert_true(sum_of(process, 0)->state_samples[THREAD_IDLE] > 100);
	assert_int_equal(sum_of(process, 0)->state_samples[THREAD_BLOCKED], 0);
	assert_in_range(machine.lock_looks, 1, 2 * (sum_of(process, 0)->samples + 2));
}

/* However many locks there are. */
static void no_lock_is_forgotten_for_others(void **state)
{
	static struct wait many[MADE_UP_THREADS];
	struct made_up_process *process = begin_again(state, bursts);

	process->thread_count = MADE_UP_THREADS;
	for (size_t i = 0; i < MADE_UP_THREADS; i++) {
		many[i] = (struct wait){ .kind = WAIT_LOCK, .lock = 0x7000 + 0x40 * i, .is_shared = true };
		process->threads[i] = (struct made_up_thread){
			.run_ns = MS, .sleep_ns = for_ever, .function = &in_c, .wait = &many[i]
		};
	}
	machine.events_end_ns = UINT64_MAX;
	machine.events_but_one_in = MADE_UP_THREADS + 1; /* another one at each look */
	options.wall_clock = true;
	run();
	assert_true(sum_of(process, 0)->state_samples[THREAD_IDLE] > 100);
	for (size_t i = 0; i < MADE_UP_THREADS; i++)
		assert_int_equal(sum_of(process, i)->state_samples[THREAD_BLOCKED], 0);
}

/* A thread that ljspy knows: what counts is what its own sleep was found to be. */
static void who_waits_for_a_thread_with_work_is_blocked(void **state)
{
	static const struct wait events = { .kind = WAIT_EVENTS }, poll = { .kind = WAIT_POLL };
	static const struct {
		struct made_up_thread holder;
		uint64_t events_end_ns;
		enum thread_state state;
	} cases[] = {
		{ { .function = &in_c, .wait = &events }, 0, THREAD_IDLE },
		{ { .function = &in_c, .wait = &poll }, 0, THREAD_IDLE },
		{ { .function = &in_lua, .wait = &poll }, UINT64_MAX, THREAD_BLOCKED },
		{ { .function = &in_c, .wait = &locks[1] }, UINT64_MAX, THREAD_BLOCKED },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct made_up_thread waits = {
			.run_ns = MS, .sleep_ns = for_ever, .function = &in_c, .wait = &locks[0]
		};
		struct made_up_process *process = begin_again(state, waits);
		const struct sum *sum = sum_of(process, 0);

		process->thread_count = 2;
		process->threads[1] = cases[i].holder;
		process->threads[1].run_ns = MS;
		process->threads[1].sleep_ns = for_ever;
		machine.held_lock = locks[0].lock;
		machine.holder = 1;
		machine.events_end_ns = cases[i].events_end_ns;
		options.wall_clock = true;
		run();
		assert_true(sum->state_samples[cases[i].state] > 100);
		assert_int_equal(sum->state_samples[THREAD_IDLE] + sum->state_samples[THREAD_BLOCKED],
				 sum->state_samples[cases[i].state]);
	}
}

static void who_sleeps_on_is_blocked_once_the_holder_works(void **state)
{
	struct made_up_process *process = begin_again(state, bursts);
	const struct sum *sum = sum_of(process, 0);

	process->threads[0].function = &in_c;
	process->threads[0].sleep_ns = for_ever;
	machine.wait = locks[0];
	machine.events_end_ns = machine.now_ns + NS_PER_SECOND;
	options.wall_clock = true;
	run();
	assert_true(sum->state_samples[THREAD_IDLE] > 40);
	assert_true(sum->state_samples[THREAD_BLOCKED] > 100);
}

static unsigned int idle_later; /* samples, once the holder works */

static void count_idle_later(const struct sample *sample)
{
	idle_later += sample->thread_state == THREAD_IDLE && machine.now_ns > machine.events_end_ns;
}

/* The holder begins to work while the thread runs: the last look at the lock tells nothing then. */
static void what_a_lock_was_some_looks_ago_does_not_count(void **state)
{
	const struct made_up_thread slow = { .run_ns = 200 * MS, .sleep_ns = 200 * MS, .function = &in_c };
	const uint64_t cycle_ns = slow.run_ns + slow.sleep_ns;
	struct made_up_process *process = begin_again(state, slow);

	machine.wait = locks[0];
	machine.events_end_ns = (machine.now_ns / cycle_ns + 3) * cycle_ns + 100 * MS;
	each_sample = count_idle_later;
	idle_later = 0;
	options.wall_clock = true;
	run();
	assert_true(sum_of(process, 0)->state_samples[THREAD_IDLE] > 20);
	assert_int_equal(idle_later, 0);
}

/* Its locks are no longer those that were seen. */
static void another_program_has_other_locks(void **state)
{
	struct made_up_process *process = begin_again(state, bursts);

	process->threads[0].function = &in_c;
	process->threads[0].sleep_ns = for_ever;
	process->exec_ns = process->exec_luajit_ns = machine.now_ns + 3 * (uint64_t)NS_PER_SECOND;
	machine.wait = locks[0];
	machine.events_end_ns = process->exec_ns;
	each_sample = count_idle_later;
	idle_later = 0;
	options.wall_clock = true;
	run();
	assert_true(sum_of(process, 0)->state_samples[THREAD_BLOCKED] > 20);
	assert_in_range(idle_later, 0, 1); /* the end of the program before */
}

/* The kernel shows only that it is begun again; the stop has shown which one it is. */
static void a_call_that_goes_on_after_a_stop_is_the_one_that_was_stopped(void **state)
{
	enum { PC = 0x400100, SP = 0x7f0040 };
	static const struct {
		uint64_t pc, sp;
		int64_t stopped, number, expected;
	} cases[] = {
		{ PC, SP, SYS_nanosleep, SYS_restart_syscall, SYS_nanosleep },
		{ PC, SP, 0, SYS_restart_syscall, 0 },
		{ PC, SP, -1, SYS_restart_syscall, SYS_restart_syscall }, /* it was in no call */
		{ PC + 1, SP, SYS_nanosleep, SYS_restart_syscall, SYS_restart_syscall },
		{ PC, SP + 1, SYS_nanosleep, SYS_restart_syscall, SYS_restart_syscall },
		{ PC, SP, SYS_nanosleep, SYS_ppoll, SYS_ppoll },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin_again(state, bursts);
		machine.call = (struct thread_call){
			.known = true, .number = cases[i].number, .pc = PC, .sp = SP
		};
		machine.held = (struct registers){ .pc = cases[i].pc,
						   .sp = cases[i].sp,
						   .call_number = (uint64_t)cases[i].stopped };
		options.wall_clock = true;
		options.duration_ns = NS_PER_SECOND;
		run();
		assert_true(machine.stops > 10);
		assert_int_equal(machine.last_call, cases[i].expected);
	}
}

/* Its files may be others by then. */
static void what_a_thread_waits_for_is_not_named_if_it_has_run_meanwhile(void **state)
{
	const struct made_up_thread thread = { .run_ns = MS, .sleep_ns = 50 * MS };

	for (int counts = 0; counts < 2; counts++) {
		struct made_up_process *process = begin_again(state, thread);

		machine.counts_no_runs = !counts;
		options.wall_clock = true;
		options.duration_ns = NS_PER_SECOND;
		run();
		assert_string_equal(sum_of(process, 0)->told[THREAD_BLOCKED].wait, "nanosleep");
		assert_int_equal(machine.brief_waits, 0);
		machine.wakes = 1;
		run();
		assert_string_equal(sum_of(process, 0)->told[THREAD_BLOCKED].wait, "brief");
		assert_true(machine.brief_waits > 10);
	}
}

/* A program may open new files for ever. */
static void names_of_waits_take_no_more_than_their_room(void **state)
{
	enum { ROOM = 4 << 20 };
	struct made_up_process *process = add(1, (struct made_up_thread){ .run_ns = MS, .sleep_ns = 5 * MS });
	size_t size;

	(void)state;
	options.wall_clock = true;
	machine.names_waits = true;
	options.duration_ns = UINT64_C(30) * NS_PER_SECOND;
	run();
	assert_int_equal(machine.brief_waits, 0);
	assert_string_not_equal(sum_of(process, 0)->told[THREAD_BLOCKED].wait, "brief");
	options.duration_ns = UINT64_C(200) * NS_PER_SECOND;
	run();
	size = functions_size(options.functions);
	assert_true(machine.brief_waits > 1000);
	assert_string_equal(sum_of(process, 0)->told[THREAD_BLOCKED].wait, "brief");
	assert_true(size > ROOM);
	assert_true(size < 2 * ROOM);
}

/*---- Threads ----*/

/* What ran so long ago may run again as long from now. */
static void a_thread_is_lively_for_longer_the_longer_it_slept(void **state)
{
	const uint64_t second = NS_PER_SECOND;
	struct thread_record record = { .ran_at_ns = 100 * second };

	(void)state;
	target_note_run(&record, 101 * second);
	assert_int_equal(record.lively_ns, 5 * second);
	target_note_run(&record, 111 * second);
	assert_int_equal(record.lively_ns, 40 * second);
	target_note_run(&record, 112 * second);
	assert_int_equal(record.lively_ns, 40 * second);
	assert_int_equal(record.ran_at_ns, 112 * second);
	target_note_run(&record, 1112 * second);
	assert_int_equal(record.lively_ns, 600 * second);
}

static void what_a_thread_did_before_it_is_opened_is_forgotten(void **state)
{
	const struct thread thread = { .cpu_ns = 70, .waited_ns = 30 };
	struct thread_record record = {
		.on_cpu = { 1, 2 }, .waiting = { 3, 4 }, .asleep = { 5, 6 }, .lively_ns = 7
	};

	(void)state;
	target_open_record(&record, &thread, 1000);
	assert_int_equal(record.on_cpu.pending_ns, 0);
	assert_int_equal(record.on_cpu.sample_count, 0);
	assert_int_equal(record.waiting.pending_ns, 0);
	assert_int_equal(record.asleep.pending_ns, 0);
	assert_int_equal(record.measured_ns, 1000);
	assert_int_equal(record.last_sample_ns, 1000);
	assert_int_equal(record.ran_at_ns, 1000);
	assert_int_equal(record.cpu_ns, 70);
	assert_int_equal(record.waited_ns, 30);
	assert_int_equal(record.lively_ns, 0);
}

static void a_thread_that_ends_keeps_its_time(void **state)
{
	struct made_up_process *process = add(3, bursts);
	uint64_t begin_ns;

	(void)state;
	process->threads[1].end_ns = UINT64_C(4) * NS_PER_SECOND;
	begin_ns = run();
	assert_near(sum_of(process, 1)->cpu_ns,
		    made_up_times(&process->threads[1], process->threads[1].end_ns).cpu_ns -
			    made_up_times(&process->threads[1], begin_ns).cpu_ns,
		    RESERVE_NS);
	assert_near(sum_of(process, 0)->cpu_ns + sum_of(process, 1)->cpu_ns + sum_of(process, 2)->cpu_ns +
			    of_no_thread.cpu_ns,
		    made_up_cpu_ns(process, machine.now_ns) - made_up_cpu_ns(process, begin_ns),
		    TOLERANCE_NS);
}

/* The kernel gives the id of a thread that has ended to another. */
static void threads_of_one_id_have_their_own_times(void **state)
{
	static const struct made_up_thread later = { .begin_ns = UINT64_C(6) * NS_PER_SECOND,
						     .run_ns = 2 * MS,
						     .sleep_ns = 4 * MS };

	for (int wall_clock = 0; wall_clock < 2; wall_clock++) {
		struct made_up_process *process;
		struct made_up_times begin, first, second;
		uint64_t begin_ns;

		forget(state);
		make_up(state);
		options.wall_clock = wall_clock;
		process = add(2, bursts);
		process->threads[1].end_ns = UINT64_C(4) * NS_PER_SECOND;
		process->threads[1].next = &later;
		begin_ns = run();
		begin = made_up_times(&process->threads[1], begin_ns);
		first = made_up_times(&process->threads[1], process->threads[1].end_ns);
		second = made_up_times(&later, machine.now_ns);
		assert_near(sum_of(process, 1)->cpu_ns, first.cpu_ns - begin.cpu_ns + second.cpu_ns,
			    2 * RESERVE_NS);
		if (wall_clock)
			assert_near(sum_of(process, 1)->state_ns[THREAD_BLOCKED],
				    first.slept_ns - begin.slept_ns + second.slept_ns, 2 * RESERVE_NS);
	}
}

static uint64_t last_of_first_ns, rest_samples;

/* What is left of its time, in the sleep where it was last seen or without a stack. */
static void see_rest(const struct sample *sample)
{
	if (sample->tid != FIRST_PID + 1)
		return;
	last_of_first_ns = sample->time_ns;
	if (sample->frames[0].function->kind != FRAME_LOST)
		return;
	assert_string_equal(sample->frames[0].function->name, "target ended");
	rest_samples++;
}

/* Not when the recording ends. */
static void the_rest_of_a_thread_that_ends_is_told_then(void **state)
{
	struct made_up_process *process = add(2, bursts);

	(void)state;
	options.wall_clock = true;
	process->threads[1].end_ns = UINT64_C(4) * NS_PER_SECOND;
	last_of_first_ns = rest_samples = 0;
	each_sample = see_rest;
	run();
	assert_true(rest_samples > 0);
	assert_near(last_of_first_ns, process->threads[1].end_ns, RESERVE_NS);
}

/*---- Before and after ----*/

static void threads_have_half_of_the_files(void **state)
{
	struct rlimit limit;

	(void)state;
	add(1, busy);
	options.duration_ns = NS_PER_SECOND;
	run();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(limit.rlim_cur, limit.rlim_max);
	assert_int_equal(machine.files_allowed, limit.rlim_cur / 2);
}

static void the_tracer_does_what_it_may(void **state)
{
	add(1, busy);
	options.duration_ns = NS_PER_SECOND;
	run();
	assert_false(machine.stays_away);
	assert_false(machine.allows_attach);
	assert_true(machine.has_counted_holds);
	begin_again(state, busy);
	options.duration_ns = NS_PER_SECOND;
	options.no_stop = true;
	run();
	assert_true(machine.stays_away);
	assert_false(machine.allows_attach);
	begin_again(state, busy);
	options.duration_ns = NS_PER_SECOND;
	options.allow_attach = true;
	run();
	assert_false(machine.stays_away);
	assert_true(machine.allows_attach);
}

static void a_sampler_that_cannot_begin_is_a_failure(void **state)
{
	add(1, busy);
	machine.no_memory_for = "tracer";
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_FAILED);
	assert_int_equal(result.error, -EAGAIN);
	begin_again(state, busy);
	machine.no_memory_for = "files";
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_FAILED);
	assert_int_equal(result.error, -ENOMEM);
	assert_int_equal(result.figures.duration_ns, 0);
}

/* On this machine, ljspy's clock is that of its CPU time, too. */
static void its_cost_has_that_of_symbols(void **state)
{
	(void)state;
	add(1, bursts);
	machine.symbols_cpu_ns = 777;
	run();
	assert_int_equal(result.figures.self_cpu_ns, machine.now_ns - STARTED_AT_NS + 777);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_up, forget)
	const struct CMUnitTest tests[] = {
		TEST(a_look_that_comes_too_late_takes_no_sample),
		TEST(a_look_is_late_by_a_wait_or_by_other_work),
		TEST(a_late_look_does_not_say_that_nothing_runs),
		TEST(a_sample_of_cpu_time_tells_the_time_since_the_last_one),
		TEST(the_next_look_is_put_off_for_as_long_as_a_thread_was_held),
		TEST(a_wait_for_a_cpu_after_a_hold_puts_off_the_next_look),
		TEST(a_look_at_the_collector_is_as_old_as_the_hold),
		TEST(a_hold_lasts_until_the_thread_runs_again),
		TEST(a_thread_whose_registers_cannot_be_read_has_no_sample),
		TEST(whose_time_has_no_sample_says_why),
		TEST(a_stack_that_finds_no_memory_is_lost),
		TEST(a_thread_that_fell_asleep_before_it_stopped_is_missed),
		TEST(a_thread_is_looked_at_again_after_a_turn_is_used_up),
		TEST(only_a_thread_that_had_a_cpu_is_rehearsed),
		TEST(what_has_not_run_since_the_last_look_is_not_looked_at_again),
		TEST(what_sleeping_threads_sleep_in_is_watched),
		TEST(a_stack_that_is_nowhere_to_be_found_is_lost),
		TEST(a_thread_that_waits_at_the_end_is_sampled_once_it_runs),
		TEST(a_thread_that_waits_for_long_at_the_end_is_not_awaited),
		TEST(at_the_end_calls_are_no_hindrance),
		TEST(no_thread_is_looked_at_once_ljspy_is_to_let_go),
		TEST(one_that_refuses_is_not_left_out_of_a_run_that_lets_go),
		TEST(a_recording_is_as_long_as_it_is_to_be),
		TEST(a_target_rests_after_five_seconds_without_cpu_time),
		TEST(a_target_that_rests_is_asked_once_a_second),
		TEST(late_looks_keep_no_target_from_resting),
		TEST(a_target_that_no_alarm_reports_is_seen_by_its_clock),
		TEST(an_alarm_of_a_target_that_is_gone_means_nothing),
		TEST(reports_of_threads_are_asked_for_now_and_then),
		TEST(what_a_thread_waits_for_says_whether_it_is_idle),
		TEST(a_thread_that_waits_for_its_turn_is_idle),
		TEST(locks_are_told_apart),
		TEST(no_lock_is_forgotten_for_others),
		TEST(who_waits_for_a_thread_with_work_is_blocked),
		TEST(who_sleeps_on_is_blocked_once_the_holder_works),
		TEST(what_a_lock_was_some_looks_ago_does_not_count),
		TEST(another_program_has_other_locks),
		TEST(a_call_that_goes_on_after_a_stop_is_the_one_that_was_stopped),
		TEST(what_a_thread_waits_for_is_not_named_if_it_has_run_meanwhile),
		TEST(names_of_waits_take_no_more_than_their_room),
		TEST(a_thread_is_lively_for_longer_the_longer_it_slept),
		TEST(what_a_thread_did_before_it_is_opened_is_forgotten),
		TEST(a_thread_that_ends_keeps_its_time),
		TEST(threads_of_one_id_have_their_own_times),
		TEST(the_rest_of_a_thread_that_ends_is_told_then),
		TEST(threads_have_half_of_the_files),
		TEST(the_tracer_does_what_it_may),
		TEST(a_sampler_that_cannot_begin_is_a_failure),
		TEST(its_cost_has_that_of_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
