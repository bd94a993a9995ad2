/* SPDX-License-Identifier: MIT */
/* What samples stand for, judged by a machine of which everything is known. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/process.h"
#include "src/sampler/sampler_resumed.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/sampled_machine.h"

/*---- CPU time ----*/

static void samples_stand_for_all_cpu_time(void **state)
{
	struct made_up_process *process = add(1, bursts);
	uint64_t begin_ns = run(), used_ns;

	(void)state;
	used_ns = made_up_cpu_ns(process, machine.now_ns) - made_up_cpu_ns(process, begin_ns);
	assert_true(used_ns > UINT64_C(2) * NS_PER_SECOND);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_near(sum_of(process, 0)->cpu_ns + of_no_thread.cpu_ns, used_ns, TOLERANCE_NS);
	assert_near(sum_of(process, 0)->cpu_ns, used_ns, RESERVE_NS);
	assert_near(result.figures.target_cpu_ns, used_ns, TOLERANCE_NS);
	assert_int_equal(result.figures.samples, sum_of(process, 0)->samples + of_no_thread.samples);
	/* Chance finds it running a few times more or less; less counts as missed. */
	assert_in_range(result.figures.samples + result.figures.missed_ticks, used_ns / period_ns - 2,
			used_ns / period_ns + 20);
}

static void is_of_its_stop(const struct sample *sample)
{
	if (sample->frames[0].function->kind != FRAME_LOST)
		assert_near(sample->time_ns, machine.last_stop_ns, MS);
}

/* Where others want ljspy's CPU, it may get it back long after it has let the thread go. */
static void a_sample_has_the_time_of_its_stop(void **state)
{
	const struct made_up_process *process = add(1, bursts);

	(void)state;
	machine.resume_takes_ns = 20 * MS;
	each_sample = is_of_its_stop;
	run();
	assert_in_range(sum_of(process, 0)->samples, 20, 2000);
}

static void each_part_of_a_burst_gets_its_time(void **state)
{
	struct made_up_process *process = add(1, bursts);
	const struct sum *sum = sum_of(process, 0);

	(void)state;
	options.duration_ns = UINT64_C(400) * NS_PER_SECOND;
	run();
	for (int part = 0; part < PARTS; part++) {
		assert_true(sum->part_samples[part] > 1000);
		assert_true(fabs((double)sum->part_ns[part] * PARTS / (double)sum->cpu_ns - 1) < 0.07);
		/* A sample is worth the same wherever in a burst it was taken. */
		assert_true(fabs((double)sum->part_ns[part] / (double)sum->part_samples[part] /
					 (double)period_ns -
				 1) < 0.06);
	}
}

static void each_of_several_threads_gets_its_own_time(void **state)
{
	struct made_up_process *process = add(8, bursts);
	uint64_t begin_ns;

	(void)state;
	for (size_t i = 0; i < 8; i++)
		process->threads[i].run_ns = (i + 1) * MS;
	begin_ns = run();
	for (size_t i = 0; i < 8; i++) {
		struct made_up_times first = made_up_times(&process->threads[i], begin_ns);
		struct made_up_times last = made_up_times(&process->threads[i], machine.now_ns);

		assert_near(sum_of(process, i)->cpu_ns, last.cpu_ns - first.cpu_ns, RESERVE_NS);
	}
}

/* Whenever that was seen: it works from there to the end, so that nothing is in reserve. */
/* Of many threads one is busy, one wakes up every second for less than a tick, and the others sleep. */
static void threads_that_sleep_for_long_are_left_alone_until_they_run(void **state)
{
	static const struct made_up_thread sleeper = { .run_ns = MS,
						       .sleep_ns = UINT64_C(1000) * NS_PER_SECOND };
	struct made_up_process *process = add(MADE_UP_THREADS, sleeper);
	uint64_t begin_ns, used_ns;

	(void)state;
	process->threads[3] = (struct made_up_thread){ .run_ns = 9 * MS, .sleep_ns = MS };
	process->threads[7] = (struct made_up_thread){ .run_ns = 3 * MS, .sleep_ns = NS_PER_SECOND };
	options.duration_ns = UINT64_C(60) * NS_PER_SECOND;
	begin_ns = run();
	for (size_t i = 0; i < MADE_UP_THREADS; i++) {
		used_ns = made_up_times(&process->threads[i], machine.now_ns).cpu_ns -
			  made_up_times(&process->threads[i], begin_ns).cpu_ns;
		assert_near(sum_of(process, i)->cpu_ns, used_ns, RESERVE_NS);
	}
	/* It was lively from its first run on, so its short runs were found. */
	assert_true(sum_of(process, 7)->samples > 60 * 3 * MS / period_ns / 2);
	/* Some four measures for each sample, not one for each of the threads. */
	assert_true(machine.measures < result.figures.samples * MADE_UP_THREADS / 2);
	/* Nor does the kernel add up all threads' times at each look. */
	assert_true(machine.sums < result.figures.samples);
}

static const char *statm = "1060 548 504 109 0 122 0\n";
static unsigned long statm_opened;
static int statm_file;

INSTEAD_OF(proc_file_open);
int __wrap_proc_file_open(pid_t pid, const char *name)
{
	const bool is_statm = strcmp(name, "statm") == 0;
	const char *text = is_statm ? statm : "";
	int file;

	if (pid == getpid())
		return __real_proc_file_open(pid, name);
	file = memfd_create(name, MFD_CLOEXEC);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	if (is_statm) {
		statm_opened++;
		statm_file = file;
	}
	return file;
}

static void looks_open_no_file(void **state)
{
	const struct made_up_process *process = add(1, bursts);

	(void)state;
	statm_opened = 0;
	run();
	assert_in_range(sum_of(process, 0)->samples, 20, 2000);
	assert_int_equal(statm_opened, 1);
	assert_int_equal(fcntl(statm_file, F_GETFD), -1);
}

static void nothing_is_sampled_in_the_middle_of_an_execve(void **state)
{
	const struct made_up_process *process = add(1, bursts);
	const char *usual = statm;

	(void)state;
	statm = "34 1 0 0 0 34 0\n";
	run();
	statm = usual;
	assert_int_equal(sum_of(process, 0)->samples, 0);
	assert_true(of_no_thread.cpu_ns > 0);
}

static unsigned int asks_in_exec; /* so many find a process in the middle of an execve(), a moment apart */

INSTEAD_OF(process_is_in_exec);
bool __wrap_process_is_in_exec(pid_t pid)
{
	const bool is_in_exec = asks_in_exec > 0;

	(void)pid;
	asks_in_exec -= is_in_exec;
	machine.now_ns += is_in_exec ? 100 * MS : 0;
	return is_in_exec;
}

static void only_a_process_that_was_sampled_is_awaited_in_its_execve(void **state)
{
	const uint64_t begin_ns = machine.now_ns;

	(void)state;
	options.pids = &add(1, bursts)->pid;
	options.pid_count = 1;
	options.awaits_exec = true;
	options.duration_ns = NS_PER_SECOND;
	asks_in_exec = 5;
	sampler_run(&options, &result);
	assert_int_equal(asks_in_exec, 0);
	assert_true(result.begin_ns >= begin_ns + 500 * MS);
	assert_true(result.figures.samples > 0);
}

static void thread_has_its_cpu_time_from_its_start_on(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct made_up_process *process;
		uint64_t begin_ns = NS_PER_SECOND / 2 + (uint64_t)i * 777 * 1000;

		made_up_machine_begin(STARTED_AT_NS);
		memset(sums, 0, sizeof(sums));
		process = add(2, bursts);
		process->threads[1] = (struct made_up_thread){ .begin_ns = begin_ns,
							       .run_ns = NS_PER_SECOND };
		options.duration_ns = begin_ns + 60 * MS - STARTED_AT_NS;
		run();
		assert_near(sum_of(process, 1)->cpu_ns, machine.now_ns - begin_ns, TOLERANCE_NS);
	}
}

static void time_before_the_beginning_does_not_count(void **state)
{
	struct made_up_process *process = add(1, bursts);
	uint64_t begin_ns;

	(void)state;
	machine.now_ns = UINT64_C(3600) * NS_PER_SECOND;
	options.duration_ns = NS_PER_SECOND / 2;
	begin_ns = run();
	assert_near(sum_of(process, 0)->cpu_ns + of_no_thread.cpu_ns,
		    made_up_cpu_ns(process, machine.now_ns) - made_up_cpu_ns(process, begin_ns),
		    TOLERANCE_NS);
}

static void thread_that_stops_late_is_sampled_where_it_stops(void **state)
{
	struct made_up_process *process = add(1, bursts);

	(void)state;
	process->threads[0].stops_late = true;
	run();
	assert_true(sum_of(process, 0)->samples > 100);
	assert_int_equal(result.figures.lost[LOST_STOP_TIMED_OUT], 0);
	assert_int_equal(machine.stops, 0);
}

/* Its threads are not known. */
static void a_late_stop_is_taken_beside_a_process_without_luajit(void **state)
{
	struct made_up_process *process = add(1, bursts), *other = add(1, bursts);

	(void)state;
	process->threads[0].stops_late = true;
	options.subprocesses = other->followed = true;
	other->luajit_ns = UINT64_MAX;
	run();
	assert_true(sum_of(process, 0)->samples > 100);
	assert_int_equal(sum_of(other, 0)->samples, 0);
}

static struct {
	uint64_t at_ns;      /* of a late sample without a next one yet */
	uint64_t longest_ns; /* from one to the next */
	unsigned int count;
} late_stop;

/* Every other stop is late; the look after it has a sample. */
static void check_after_late_stop(const struct sample *sample)
{
	struct made_up_thread *thread = &machine.processes[0].threads[0];

	if (sample->thread_state == THREAD_RUNNABLE)
		return;
	if (late_stop.at_ns && sample->time_ns - late_stop.at_ns > late_stop.longest_ns)
		late_stop.longest_ns = sample->time_ns - late_stop.at_ns;
	late_stop.at_ns = 0;
	if (sample->thread_state != THREAD_RUNNING)
		return;
	if (thread->stops_late) {
		late_stop.at_ns = sample->time_ns;
		late_stop.count++;
	}
	thread->stops_late = !thread->stops_late;
}

/* Looks came while it waited for a CPU: the next one is due as if none of them had asked it to stop. */
static void a_wait_before_a_late_stop_puts_no_look_off(void **state)
{
	static const struct made_up_thread crowded = {
		.wait_ns = 50 * MS, .run_ns = 8 * MS, .sleep_ns = 45 * MS, .stops_late = true
	};

	(void)state;
	add(1, crowded);
	memset(&late_stop, 0, sizeof(late_stop));
	options.wall_clock = true;
	each_sample = check_after_late_stop;
	run();
	assert_true(late_stop.count > 10);
	assert_in_range(late_stop.longest_ns, 1, 3 * period_ns);
}

static uint64_t last_late_ns, least_gap_ns;

static void see_gap(const struct sample *sample)
{
	if (sample->thread_state != THREAD_RUNNING || machine.now_ns >= STARTED_AT_NS + options.duration_ns)
		return;
	if (last_late_ns && sample->time_ns - last_late_ns < least_gap_ns)
		least_gap_ns = sample->time_ns - last_late_ns;
	last_late_ns = sample->time_ns;
}

/* Where none came, what runs after it must not be seen more often than the rest. */
static void a_wait_before_a_late_stop_puts_off_the_look_that_would_have_come_meanwhile(void **state)
{
	enum { HZ = 49, GAP_NS = NS_PER_SECOND / HZ / 2 }; /* from one look to the next, at least */
	static const struct made_up_thread crowded = { .wait_ns = 6 * MS,
						       .run_ns = 30 * MS,
						       .stops_late = true };

	(void)state;
	add(1, crowded);
	last_late_ns = 0;
	least_gap_ns = UINT64_MAX;
	options.rate_hz = HZ;
	machine.tells_late_stops = true;
	each_sample = see_gap;
	run();
	assert_true(sum_of(&machine.processes[0], 0)->samples > 100);
	assert_in_range(least_gap_ns, GAP_NS - MS / 10, 2 * GAP_NS);
}

static struct {
	uint64_t lost_ns, at_code_ns; /* of waits for a CPU */
	unsigned int count;
} waits_told;

static void add_wait_told(const struct sample *sample)
{
	if (sample->thread_state != THREAD_RUNNABLE)
		return;
	waits_told.count++;
	if (sample->frames[0].function == lost_function(LOST_NOT_STOPPED))
		waits_told.lost_ns += sample->wall_ns;
	else
		waits_told.at_code_ns += sample->wall_ns;
}

/* No stop shows where the thread is. Where it sleeps is unknown, so no wait was there. */
static void waits_that_no_look_met_are_unknown_once_the_thread_sleeps(void **state)
{
	static const struct made_up_thread crowded = {
		.wait_ns = 45 * MS, .run_ns = MS, .sleep_ns = 54 * MS, .asleep = ASLEEP_TORN
	};
	struct made_up_process *process = add(1, crowded);
	uint64_t begin_ns;

	(void)state;
	memset(&waits_told, 0, sizeof(waits_told));
	machine.registers_error = -EIO;
	options.wall_clock = true;
	each_sample = add_wait_told;
	begin_ns = run();
	assert_in_range(waits_told.count, 10, 1000);
	assert_int_equal(waits_told.at_code_ns, 0);
	assert_near(waits_told.lost_ns,
		    made_up_times(&process->threads[0], machine.now_ns).waited_ns -
			    made_up_times(&process->threads[0], begin_ns).waited_ns,
		    50 * MS);
}

static void thread_that_bears_no_stop_is_sampled_without_one(void **state)
{
	struct made_up_process *process = add(1, bursts);

	(void)state;
	process->threads[0].nature = MAY_NOT_CALLS;
	run();
	assert_int_equal(machine.stops, 0);
	assert_true(result.figures.undisturbed > 300);
	assert_near(result.figures.undisturbed, sum_of(process, 0)->samples, 2);
	assert_near(machine.without_native, result.figures.undisturbed, 2);
}

static void without_stops_samples_are_taken_beside_the_threads(void **state)
{
	struct made_up_process *process = add(2, bursts);
	uint64_t begin_ns;

	(void)state;
	options.no_stop = true;
	begin_ns = run();
	assert_int_equal(machine.stops, 0);
	assert_int_equal(machine.rehearsals, 0);
	/* No stack has native frames, so none says that it lacks them. */
	assert_int_equal(machine.without_native, 0);
	assert_int_equal(result.figures.undisturbed, 0);
	assert_int_equal(figures_lost(&result.figures), of_no_thread.samples);
	for (size_t i = 0; i < 2; i++) {
		assert_true(sum_of(process, i)->samples > 300);
		assert_near(sum_of(process, i)->cpu_ns,
			    made_up_times(&process->threads[i], machine.now_ns).cpu_ns -
				    made_up_times(&process->threads[i], begin_ns).cpu_ns,
			    RESERVE_NS);
	}
}

static void see_place(const struct sample *sample)
{
	const struct stack_place *place = &machine.place;
	const uint64_t first = FIRST_PID;

	if (sample->tid == 0)
		return;
	/* The machine has stacks at their threads' ids; the last one's cannot be found. */
	assert_int_equal(place->address, sample->tid);
	assert_int_equal(place->is_end, place->address != first);
	assert_int_equal(place->below, place->address == first ? 0 : place->address - 1);
	assert_int_equal(place->below_is_end, place->address > first + 1);
	assert_int_equal(place->above, place->address == first + 2 ? UINT64_MAX : place->address + 1);
	assert_int_equal(place->others_unknown, machine.processes[0].thread_count == 4);
}

static void a_stack_is_known_beside_those_of_other_threads(void **state)
{
	for (size_t hidden = 0; hidden < 2; hidden++) {
		struct made_up_process *process;

		forget(state);
		make_up(state);
		process = add(3 + hidden, bursts);
		process->threads[3] = (struct made_up_thread){ .run_ns = 1,
							       .sleep_ns = UINT64_C(1000) * NS_PER_SECOND,
							       .hides_stack = true };
		options.no_stop = true;
		each_sample = see_place;
		run();
		for (size_t i = 0; i < 3; i++)
			assert_true(sum_of(process, i)->samples > 300);
	}
}

static void a_stack_that_cannot_be_read_beside_its_thread_is_lost(void **state)
{
	static const struct {
		enum capture_verdict verdict;
		enum lost_reason reason;
	} cases[] = { { CAPTURE_TORN, LOST_RAN_MEANWHILE },
		      { CAPTURE_NO_LUA, LOST_NOT_STOPPED },
		      { CAPTURE_UNSURE, LOST_NOT_STOPPED } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made_up_process *process;

		forget(state);
		make_up(state);
		process = add(1, bursts);
		process->threads[0].nature = MAY_NOT_CALLS;
		process->threads[0].running = cases[i].verdict;
		machine.phase = "content";
		run();
		assert_true(sum_of(process, 0)->samples > 300);
		assert_int_equal(result.figures.lost[cases[i].reason], sum_of(process, 0)->samples);
		assert_int_equal(sum_of(process, 0)->lost_ns,
				 sum_of(process, 0)->cpu_ns + sum_of(process, 0)->wall_ns);
		/* Nothing of what it tells is known. */
		assert_null(sum_of(process, 0)->told[THREAD_RUNNING].phase);
		assert_int_equal(sum_of(process, 0)->markings, 0);
	}
}

static void a_thread_is_held_for_as_long_as_its_copy_takes(void **state)
{
	(void)state;
	add(1, bursts);
	run();
	assert_true(machine.stops > 300);
	assert_in_range(histogram_percentile(&result.figures.pause_ns, 500), 4000, 6000);
	assert_in_range(histogram_percentile(&result.figures.pause_ns, 1000), 4000, 6000);
}

/* The first thread runs the event loop. */
static void samples_tell_the_turn_of_the_loop_or_the_sleeps(void **state)
{
	struct made_up_process *process = add(2, bursts);

	(void)state;
	options.wall_clock = options.turns = true;
	machine.loop_ns = 4321;
	run();
	assert_int_equal(sum_of(process, 0)->told[THREAD_RUNNING].loop_ns, 4321);
	assert_int_equal(sum_of(process, 0)->told[THREAD_BLOCKED].loop_ns, 4321);
	assert_int_equal(sum_of(process, 1)->told[THREAD_RUNNING].loop_ns, 0);
	assert_true(machine.stops > 300);
	forget(state);
	make_up(state);
	process = add(1, bursts);
	machine.loop_ns = 4321;
	options.wall_clock = true;
	run();
	assert_int_equal(sum_of(process, 0)->told[THREAD_RUNNING].loop_ns, 0);
}

static void samples_tell_what_was_found_on_the_stack(void **state)
{
	struct made_up_process *process = add(2, bursts);
	char route[] = "/route";

	(void)state;
	options.wall_clock = true;
	machine.phase = "content";
	machine.request = (struct sample_request){ .route = route, .connection = 6 };
	machine.code_pc = 99;
	machine.proto = 98;
	run();
	for (size_t i = 0; i < 2; i++) {
		const struct sum *sum = sum_of(process, i);
		const struct told *runs = &sum->told[THREAD_RUNNING], *sleeps = &sum->told[THREAD_BLOCKED];

		assert_string_equal(runs->phase, "content");
		assert_string_equal(sleeps->phase, "content");
		assert_string_equal(runs->route, "there");
		assert_string_equal(sleeps->route, "there");
		assert_int_equal(runs->connection, 6);
		assert_int_equal(sleeps->connection, 6);
		assert_int_equal(runs->code_pc, 99);
		assert_int_equal(runs->proto, 98);
		assert_string_equal(sleeps->wait, "nanosleep");
		assert_string_equal(runs->wait, "");
		assert_string_equal(runs->process, "thread 0");
		assert_string_equal(sleeps->process, "thread 0");
		assert_string_equal(runs->thread, i ? "thread 1" : "thread 0");
		assert_string_equal(sleeps->thread, i ? "thread 1" : "thread 0");
		assert_true(sum->state_samples[THREAD_BLOCKED] > 300);
	}
}

/* What a collector has done since the last look at it, one sample tells, however many are of that look. */
static void what_was_allocated_is_told_once(void **state)
{
	struct made_up_process *process = add(1, bursts);
	const struct sum *sum = sum_of(process, 0);

	(void)state;
	options.wall_clock = true;
	process->threads[0] = (struct made_up_thread){ .wait_ns = 7 * MS,
						       .run_ns = 9 * MS,
						       .sleep_ns = 60 * MS };
	run();
	assert_true(sum->state_samples[THREAD_RUNNABLE] > 50);
	assert_true(sum->samples > machine.collectors + 50);
	assert_near(sum->allocated_bytes, machine.collectors, 1); /* the last sleep may have no sample */
	assert_near(sum->markings, machine.collectors, 1);
	assert_near(sum->used_ns, machine.collectors, 1);
}

/*---- Rates and weights ----*/

static void rate_is_that_of_cpu_time(void **state)
{
	static const unsigned int rates[] = { 19, 99, 997 };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		forget(state);
		make_up(state);
		add(1, bursts);
		options.rate_hz = rates[i];
		options.duration_ns = UINT64_C(40) * NS_PER_SECOND;
		run();
		assert_true(result.figures.samples > 100);
		assert_true(fabs(result.figures.rate_reached_hz / rates[i] - 1) < 0.1);
		assert_true(result.figures.rate_asked_hz == rates[i]);
	}
}

/* Looks at a target that has just slept find little time pending; they are worth no less. */
static void samples_weigh_alike_however_much_is_pending(void **state)
{
	const struct sampler sampler = { .period_ns = period_ns };
	struct time_account account = { 0 };
	uint64_t taken_ns = 0, added_ns = 0;

	(void)state;
	for (int i = 0; i < 400; i++) {
		uint64_t add_ns = i % 2 ? period_ns / 5 : period_ns * 9 / 5, weight_ns;

		account.pending_ns += (int64_t)add_ns;
		weight_ns = sampler_take_weight(&sampler, &account);
		added_ns += add_ns;
		taken_ns += weight_ns;
		if (i > 100)
			assert_near(weight_ns, period_ns, period_ns / 20);
	}
	assert_int_equal(account.pending_ns, added_ns - taken_ns);
}

static void first_samples_wait_for_no_reserve(void **state)
{
	const struct sampler sampler = { .period_ns = period_ns };
	struct time_account account = { .pending_ns = (int64_t)period_ns / 2 };

	(void)state;
	assert_int_equal(sampler_take_weight(&sampler, &account), period_ns / 2);
	assert_int_equal(account.pending_ns, 0);
}

static void last_sample_takes_the_reserve(void **state)
{
	struct sampler sampler = { .period_ns = period_ns };
	struct time_account account = { .pending_ns = 3 * (int64_t)period_ns, .sample_count = 1000 };

	(void)state;
	assert_near(sampler_take_weight(&sampler, &account), period_ns, period_ns / 10);
	sampler.closing = true;
	assert_near(sampler_take_weight(&sampler, &account), 2 * period_ns, period_ns / 10);
	assert_int_equal(account.pending_ns, 0);
}

static void account_in_debt_gives_nothing(void **state)
{
	const struct sampler sampler = { .period_ns = period_ns };
	struct time_account account = { .pending_ns = -5 };

	(void)state;
	assert_int_equal(sampler_take_weight(&sampler, &account), 0);
	assert_int_equal(sampler_take_all(&account), 0);
	assert_int_equal(account.pending_ns, -5);
}

/*---- The wall clock ----*/

static void assert_all_times(const struct made_up_process *process, size_t thread, uint64_t begin_ns)
{
	struct made_up_times first = made_up_times(&process->threads[thread], begin_ns);
	struct made_up_times last = made_up_times(&process->threads[thread], machine.now_ns);
	const struct sum *sum = sum_of(process, thread);

	assert_near(sum->state_ns[THREAD_RUNNING], last.cpu_ns - first.cpu_ns, TOLERANCE_NS);
	assert_near(sum->state_ns[THREAD_RUNNABLE], last.waited_ns - first.waited_ns, TOLERANCE_NS);
	assert_near(sum->state_ns[THREAD_BLOCKED] + sum->state_ns[THREAD_IDLE],
		    last.slept_ns - first.slept_ns, TOLERANCE_NS);
	assert_near(sum->cpu_ns, last.cpu_ns - first.cpu_ns, TOLERANCE_NS);
}

static void wall_clock_tells_all_of_each_threads_time(void **state)
{
	struct made_up_process *process = add(3, bursts);
	uint64_t begin_ns;

	(void)state;
	options.wall_clock = true;
	process->threads[1] = (struct made_up_thread){ .wait_ns = 2 * MS,
						       .run_ns = 7 * MS,
						       .sleep_ns = 30 * MS };
	process->threads[2] = (struct made_up_thread){ .wait_ns = 20 * MS, .run_ns = 1 * MS, .sleep_ns = 0 };
	begin_ns = run();
	for (size_t i = 0; i < 3; i++) {
		assert_all_times(process, i, begin_ns);
		/* All but what is left over at the end has its stack. */
		assert_true(sum_of(process, i)->lost_ns < sum_of(process, i)->wall_ns / 20);
	}
	/* With the samples of its CPU time, not all at the end. */
	assert_true(sum_of(process, 2)->state_samples[THREAD_RUNNABLE] > 50);
}

static unsigned lost_waits;

static void see_lost_waits(const struct sample *sample)
{
	if (sample->thread_state != THREAD_RUNNABLE || sample->frames[0].function->kind != FRAME_LOST)
		return;
	assert_string_equal(sample->frames[0].function->name, "not stopped");
	lost_waits++;
}

/*
 * It has waited for a CPU since long before the end, which the kernel does not tell before the wait is over.
 * Of the sleep before, the time since its last look is left over.
 */
static void wait_for_a_cpu_at_the_end_is_told(void **state)
{
	struct made_up_process *process = add(1, bursts);
	struct made_up_times first, last;
	const struct sum *sum;
	uint64_t begin_ns;

	(void)state;
	options.wall_clock = true;
	options.duration_ns = UINT64_C(2) * NS_PER_SECOND;
	process->threads[0] = (struct made_up_thread){ .wait_ns = UINT64_C(1900) * MS,
						       .run_ns = 10 * MS,
						       .sleep_ns = 10 * MS };
	machine.cannot_be_first = true; /* ljspy does not wait for it */
	lost_waits = 0;
	each_sample = see_lost_waits;
	begin_ns = run();
	assert_int_equal(lost_waits, 1);
	first = made_up_times(&process->threads[0], begin_ns);
	last = made_up_times(&process->threads[0], machine.now_ns);
	sum = sum_of(process, 0);
	assert_true(last.does == MADE_UP_WAITS);
	assert_near(sum->wall_ns, machine.now_ns - begin_ns, TOLERANCE_NS);
	assert_near(sum->cpu_ns, last.cpu_ns - first.cpu_ns, TOLERANCE_NS);
	assert_near(sum->state_ns[THREAD_RUNNABLE], last.waited_ns - first.waited_ns, period_ns);
	assert_true(sum->state_ns[THREAD_RUNNABLE] > NS_PER_SECOND);
}

/* The end comes while it runs: no later sample takes what its sleeps have left over. */
static void sleep_before_the_last_run_is_told(void **state)
{
	struct made_up_process *process = add(
		1, (struct made_up_thread){ .run_ns = 50 * MS, .sleep_ns = 950 * MS });
	uint64_t begin_ns;

	(void)state;
	options.wall_clock = true;
	options.duration_ns = UINT64_C(4020) * MS;
	begin_ns = run();
	assert_true(made_up_times(&process->threads[0], machine.now_ns).does == MADE_UP_RUNS);
	assert_all_times(process, 0, begin_ns);
}

static uint64_t first_sleep_ns;

static void see_first_sleep(const struct sample *sample)
{
	if (sample->tid == FIRST_PID + 1 && sample->thread_state != THREAD_RUNNING && !first_sleep_ns)
		first_sleep_ns = sample->wall_ns;
}

/* A thread that waits for work and has nothing to do with Lua matters once it runs: from the beginning on. */
static void sleep_of_a_native_thread_is_told_once_it_runs(void **state)
{
	static const struct function in_c = { .kind = FRAME_NATIVE,
					      .name = "computes",
					      .module = "made_up.so" };
	struct made_up_process *process = add(3, bursts);
	uint64_t begin_ns;

	(void)state;
	machine.now_ns = 100 * MS;
	options.wall_clock = true;
	options.duration_ns = UINT64_C(4) * NS_PER_SECOND;
	process->threads[1] = (struct made_up_thread){ .run_ns = 20 * MS,
						       .sleep_ns = UINT64_C(3) * NS_PER_SECOND,
						       .function = &in_c };
	process->threads[2] = (struct made_up_thread){ .run_ns = 20 * MS,
						       .sleep_ns = UINT64_C(9) * NS_PER_SECOND,
						       .function = &in_c };
	first_sleep_ns = 0;
	each_sample = see_first_sleep;
	begin_ns = run();
	assert_all_times(process, 1, begin_ns);
	/* All of that was one sleep, at one place. */
	assert_near(first_sleep_ns, process->threads[1].run_ns + process->threads[1].sleep_ns - begin_ns,
		    2 * period_ns);
	assert_int_equal(sum_of(process, 2)->samples, 0);
}

/* One that waits in Lua matters, also if nothing happens until the end. */
static void sleep_below_lua_is_told_without_a_run(void **state)
{
	struct made_up_process *process = add(2, bursts);
	uint64_t begin_ns;

	(void)state;
	machine.now_ns = 100 * MS;
	options.wall_clock = true;
	options.duration_ns = UINT64_C(4) * NS_PER_SECOND;
	process->threads[1] = (struct made_up_thread){ .run_ns = 20 * MS,
						       .sleep_ns = UINT64_C(9) * NS_PER_SECOND };
	begin_ns = run();
	assert_true(sum_of(process, 1)->samples > 100);
	assert_all_times(process, 1, begin_ns);
}

static size_t sleeps_seen, short_sleeps;

static void see_sleep(const struct sample *sample)
{
	if (sample->thread_state == THREAD_RUNNING)
		return;
	sleeps_seen++;
	short_sleeps += machine.copy_is_short;
}

/* Where a copy is too short, another one is made before the sample. */
static void no_sleep_is_told_by_a_short_copy(void **state)
{
	(void)state;
	add(1, bursts);
	options.wall_clock = true;
	machine.short_copies = true;
	sleeps_seen = short_sleeps = 0;
	each_sample = see_sleep;
	run();
	assert_true(sleeps_seen > 10);
	assert_int_equal(short_sleeps, 0);
}

static void see_vm_state(const struct sample *sample)
{
	if (sample->thread_state == THREAD_RUNNING || sample->frames[0].function->kind == FRAME_LOST)
		return;
	sleeps_seen++;
	short_sleeps += sample->vm_state != VM_STATE_INTERPRETED;
}

/* It runs meanwhile: then what is told of its last sleep, as at the end, is all from one copy. */
static void a_copy_that_comes_to_nothing_changes_no_sleep(void **state)
{
	sleeps_seen = short_sleeps = 0;
	for (unsigned int i = 0; i < 40; i++) {
		forget(state);
		make_up(state);
		add(1, (struct made_up_thread){ .run_ns = MS, .sleep_ns = 20 * MS });
		options.wall_clock = true;
		options.duration_ns = 100 * MS + i * MS;
		machine.short_copies = true;
		machine.unwind_takes_ns = 8 * MS;
		each_sample = see_vm_state;
		run();
	}
	assert_true(sleeps_seen > 40);
	assert_int_equal(short_sleeps, 0);
}

static void missed_ticks_are_those_that_ljspy_overslept(void **state)
{
	struct made_up_process *process = add(1, (struct made_up_thread){ .run_ns = MS, .sleep_ns = 0 });
	uint64_t begin_ns, expected;

	(void)state;
	options.wall_clock = true;
	begin_ns = run();
	assert_true(sum_of(process, 0)->samples > 1000);
	assert_int_equal(result.figures.missed_ticks, 0);

	forget(state);
	make_up(state);
	process = add(1, (struct made_up_thread){ .run_ns = MS, .sleep_ns = 0 });
	options.wall_clock = true;
	machine.oversleep_one_in = 50;
	machine.oversleep_ns = 20 * period_ns;
	begin_ns = run();
	/* The last one of each oversleep is a look, if a late one. */
	expected = (machine.waits / 50) * 19;
	assert_true(expected > 100);
	assert_near(result.figures.missed_ticks, expected, expected / 5);
	assert_near(result.figures.samples + result.figures.missed_ticks,
		    (machine.now_ns - begin_ns) / period_ns, (machine.now_ns - begin_ns) / period_ns / 10);
}

/* A report may have come while ljspy itself was stopped: only a wait that ran its full time tells. */
static void a_wait_tells_that_nothing_came_if_it_was_not_cut_short(void **state)
{
	(void)state;
	add(1, bursts);
	machine.interrupts_one_in = 3;
	run();
	assert_true(machine.quiet_waits > 100);
	assert_true(machine.waits > machine.quiet_waits + 100);
	assert_int_equal(machine.quiets, machine.quiet_waits);
	assert_int_equal(machine.false_quiets, 0);
}

static void a_sleep_that_cannot_be_read_is_lost(void **state)
{
	static const struct {
		enum asleep_verdict verdict;
		enum lost_reason reason;
	} cases[] = { { ASLEEP_TORN, LOST_RAN_MEANWHILE }, { ASLEEP_UNKNOWN, LOST_NOT_STOPPED } };

	for (size_t i = 0; i < 2; i++) {
		struct made_up_process *process;
		uint64_t begin_ns;

		forget(state);
		make_up(state);
		process = add(1, bursts);
		process->threads[0].asleep = cases[i].verdict;
		options.wall_clock = true;
		begin_ns = run();
		assert_true(result.figures.lost[cases[i].reason] > 300);
		assert_int_equal(result.figures.lost[cases[1 - i].reason], 0);
		assert_int_equal(machine.brief_waits > 300, cases[i].verdict == ASLEEP_TORN);
		assert_all_times(process, 0, begin_ns);
	}
}

/* It may be in the middle of a call that bears no stop. */
static void a_thread_that_waits_for_a_cpu_in_a_call_is_missed(void **state)
{
	struct made_up_process *process = add(1, bursts);

	(void)state;
	process->threads[0].nature = MAY_NOT_WAITS;
	options.wall_clock = true;
	run();
	assert_int_equal(machine.stops, 0);
	assert_true(result.figures.missed_ticks > 300);
	assert_in_range(sum_of(process, 0)->state_samples[THREAD_RUNNING], 0,
			2); /* the last look, and the rest */
}

/* Without a sample, the state in the end tells what has work from what is idle. */
static void a_target_that_only_waits_for_a_cpu_is_not_idle(void **state)
{
	struct made_up_thread waits = bursts, sleeps = bursts;

	waits.wait_ns = sleeps.sleep_ns = UINT64_C(1000) * NS_PER_SECOND;
	waits.run_ns = waits.sleep_ns = 1;
	sleeps.wait_ns = 0;
	sleeps.run_ns = 1;
	for (size_t i = 0; i < 2; i++) {
		forget(state);
		make_up(state);
		add(1, i ? waits : sleeps);
		run();
		assert_int_equal(result.figures.samples, 0);
		assert_int_equal(result.wants_cpu, i);
	}
}

static void targets_that_are_stopped_in_the_end_are_told(void **state)
{
	(void)state;
	add(1, bursts);
	run();
	assert_int_equal(result.halted.count, 0);
	forget(state);
	make_up(state);
	machine.is_job_stopped = true;
	options.pids = (const pid_t[]){ add(1, bursts)->pid, add(1, bursts)->pid };
	options.pid_count = 2;
	sampler_run(&options, &result);
	assert_int_equal(result.halted.count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(result.halted.at[i].pid, machine.processes[i].pid);
		assert_int_equal(result.halted.at[i].why, HALT_SIGNAL);
	}
}

/*---- Where looks are awaited ----*/

/* From another CPU, a stop meets the call that comes next. */
static void a_thread_that_shares_its_cpu_is_visited_too(void **state)
{
	(void)state;
	add(1, (struct made_up_thread){ .wait_ns = MS, .run_ns = MS });
	machine.in_calls = true;
	run();
	assert_true(result.figures.samples > 300);
	assert_in_range(machine.visits, result.figures.samples / 2, machine.waits);
	assert_in_range(result.figures.skid, 0, 3);
}

static void late_stops_that_meet_calls_are_counted(void **state)
{
	(void)state;
	add(1, (struct made_up_thread){ .run_ns = MS, .sleep_ns = 0 });
	machine.may_not_visit = machine.in_calls = true;
	run();
	assert_true(result.figures.samples > 300);
	assert_near(result.figures.skid, result.figures.samples, 2);
	/* Those that ljspy awaited on the thread's CPU came in time, unless it has another one by then. */
	for (int changes = 0; changes < 2; changes++) {
		forget(state);
		make_up(state);
		add(1, (struct made_up_thread){ .run_ns = MS, .sleep_ns = 0 });
		machine.in_calls = true;
		machine.changes_cpu = changes;
		run();
		assert_true(result.figures.samples > 300);
		assert_near(result.figures.skid, changes ? result.figures.samples : 0, 2);
	}
	/* Others do not matter. */
	forget(state);
	make_up(state);
	add(1, (struct made_up_thread){ .run_ns = MS, .sleep_ns = 0 });
	machine.may_not_visit = true;
	run();
	assert_int_equal(result.figures.skid, 0);
}

static void a_thread_without_calls_keeps_its_cpu(void **state)
{
	(void)state;
	add(1, (struct made_up_thread){ .run_ns = MS, .sleep_ns = 0 });
	run();
	assert_in_range(machine.visits, 1, 20);
	assert_true(result.figures.samples > 500);
}

static void looks_at_a_thread_that_calls_are_awaited_on_its_cpu(void **state)
{
	(void)state;
	add(1, (struct made_up_thread){ .run_ns = MS, .sleep_ns = 0 });
	machine.in_calls = true;
	run();
	assert_true(result.figures.samples > 500);
	assert_in_range(machine.visits, result.figures.samples / 2, machine.waits);
}

static void ljspy_stays_where_a_look_finds_nothing_to_do(void **state)
{
	(void)state;
	/* It runs a quarter of the time. */
	add(1, (struct made_up_thread){ .run_ns = MS, .sleep_ns = 3 * MS });
	machine.in_calls = true;
	run();
	assert_true(result.figures.samples > 100);
	assert_true(machine.waits > 2 * result.figures.samples);
	/* After letting the thread go, and after all samples of a look; now and then for other work. */
	assert_in_range(machine.looks_ended, result.figures.samples,
			2 * result.figures.samples + machine.waits / 20);
}

/*---- Processes that come and go ----*/

static void found_process_is_sampled_while_it_runs_luajit(void **state)
{
	struct made_up_process *first = add(1, bursts), *later = add(1, bursts), *never = add(1, bursts);
	uint64_t used_ns;

	(void)state;
	options.subprocesses = true;
	later->followed = never->followed = true;
	later->begin_ns = UINT64_C(2) * NS_PER_SECOND;
	later->luajit_ns = later->begin_ns + 100 * MS;
	later->threads[0].begin_ns = later->begin_ns;
	never->luajit_ns = UINT64_MAX;
	run();
	assert_true(sum_of(first, 0)->samples > 300);
	assert_true(sum_of(later, 0)->samples > 300);
	assert_int_equal(sum_of(never, 0)->samples, 0);
	/* From its start on, whenever it was found. */
	assert_int_equal(result.figures.lost[LOST_NOT_ATTACHED], 1);
	used_ns = made_up_cpu_ns(first, machine.now_ns) - made_up_cpu_ns(first, STARTED_AT_NS) +
		  made_up_cpu_ns(later, machine.now_ns);
	assert_near(sum_of(first, 0)->cpu_ns + sum_of(later, 0)->cpu_ns + of_no_thread.cpu_ns, used_ns,
		    2 * TOLERANCE_NS);
	assert_near(result.figures.target_cpu_ns, used_ns, 2 * TOLERANCE_NS);
	assert_in_range(of_no_thread.cpu_ns, made_up_cpu_ns(later, later->luajit_ns) - TOLERANCE_NS,
			100 * MS);
}

static void recording_ends_with_its_target(void **state)
{
	struct made_up_process *process = add(1, bursts);
	uint64_t begin_ns;

	(void)state;
	process->end_ns = UINT64_C(2) * NS_PER_SECOND;
	begin_ns = run();
	assert_int_equal(result.end, SAMPLER_TARGETS_ENDED);
	assert_near(machine.now_ns, process->end_ns, 100 * MS);
	assert_near(sum_of(process, 0)->cpu_ns + of_no_thread.cpu_ns,
		    made_up_cpu_ns(process, process->end_ns) - made_up_cpu_ns(process, begin_ns), period_ns);
	assert_int_equal(result.figures.lost[LOST_TARGET_ENDED], 1);
}

static void recording_goes_on_until_its_last_target_ends(void **state)
{
	struct made_up_process *first = add(1, bursts), *second = add(1, bursts);
	const pid_t both[] = { first->pid, second->pid };

	(void)state;
	first->end_ns = UINT64_C(2) * NS_PER_SECOND;
	second->end_ns = UINT64_C(5) * NS_PER_SECOND;
	options.pids = both;
	options.pid_count = 2;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_TARGETS_ENDED);
	assert_near(machine.now_ns, second->end_ns, 100 * MS);
	assert_near(sum_of(second, 0)->cpu_ns + sum_of(first, 0)->cpu_ns + of_no_thread.cpu_ns,
		    made_up_cpu_ns(first, first->end_ns) + made_up_cpu_ns(second, second->end_ns) -
			    2 * made_up_cpu_ns(first, STARTED_AT_NS),
		    2 * period_ns);
	assert_int_equal(result.figures.lost[LOST_TARGET_ENDED], 2);
}

static void process_without_luajit_is_named(void **state)
{
	struct made_up_process *process = add(1, bursts);

	(void)state;
	process->luajit_ns = UINT64_MAX;
	run();
	assert_int_equal(result.end, SAMPLER_NO_LUAJIT);
	assert_int_equal(result.pid, process->pid);
	assert_false(result.saw_luajit);
	assert_int_equal(sum_of(process, 0)->samples, 0);
}

static void of_several_those_that_cannot_be_sampled_are_left_out(void **state)
{
	struct made_up_process *first = add(1, bursts), *other = add(1, bursts);
	const pid_t both[] = { other->pid, first->pid };

	(void)state;
	other->luajit_ns = UINT64_MAX;
	options.pids = both;
	options.pid_count = 2;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_true(sum_of(first, 0)->samples > 100);
	assert_int_equal(sum_of(other, 0)->samples, 0);
	assert_int_equal(result.left_out, 1);
	assert_int_equal(result.left_out_pid, other->pid);
	assert_int_equal(result.left_out_error, 0);
	/* One that ljspy may not look at. */
	other->luajit_ns = 0;
	other->refusal = -EPERM;
	sampler_run(&options, &result);
	assert_true(sum_of(first, 0)->samples > 200);
	assert_int_equal(sum_of(other, 0)->samples, 0);
	assert_int_equal(result.left_out_error, -EPERM);
}

static void ignore_refused(const struct sampler_noted *refused)
{
	(void)refused;
}

static void those_left_out_from_the_beginning_are_listed(void **state)
{
	const pid_t first = add(1, bursts)->pid;
	struct made_up_process *native = add(1, bursts), *other = add(1, bursts);
	const pid_t pids[] = { first, native->pid, other->pid };

	(void)state;
	native->luajit_ns = UINT64_MAX;
	other->refusal = -EPERM;
	options.pids = pids;
	options.pid_count = 3;
	sampler_run(&options, &result);
	assert_int_equal(result.refused.count, 0); /* nobody asks */
	options.tell_refused = ignore_refused;
	sampler_run(&options, &result);
	assert_int_equal(result.refused.count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(result.refused.at[i].pid, pids[i + 1]);
		assert_int_equal(result.refused.at[i].why, i ? -EPERM : 0);
	}
	assert_int_equal(result.left_out, 2);
}

static uint64_t start_ticks;

INSTEAD_OF(process_start);
uint64_t __wrap_process_start(pid_t pid)
{
	(void)pid;
	return start_ticks;
}

static void one_that_is_unreadable_is_not_looked_at(void **state)
{
	struct made_up_process *first = add(1, bursts), *other = add(1, bursts);
	const pid_t pids[] = { other->pid, first->pid };
	const struct unreadable unreadable = { .pid = other->pid, .start_ticks = 5 };

	(void)state;
	start_ticks = 5;
	options.pids = pids;
	options.pid_count = 2;
	options.unreadable = &unreadable;
	options.unreadable_count = 1;
	sampler_run(&options, &result);
	assert_true(sum_of(first, 0)->samples > 200);
	assert_int_equal(sum_of(other, 0)->samples, 0);
	assert_int_equal(result.left_out, 0); /* the front counts it */
	/* Another process has its id. */
	start_ticks = 6;
	sampler_run(&options, &result);
	assert_true(sum_of(other, 0)->samples > 0);
}

static void where_none_of_several_can_be_sampled_it_ends_at_once(void **state)
{
	struct made_up_process *native = add(1, bursts), *other = add(1, bursts);
	const pid_t both[] = { native->pid, other->pid };

	(void)state;
	native->luajit_ns = UINT64_MAX;
	other->refusal = -EPERM;
	options.pids = both;
	options.pid_count = 2;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_FAILED);
	assert_int_equal(result.pid, other->pid);
	assert_int_equal(result.error, -EPERM);
	assert_false(result.has_attached);
}

static void an_unknown_layout_is_named_with_its_reason(void **state)
{
	struct made_up_process *first = add(1, bursts), *second = add(1, bursts);
	const pid_t both[] = { first->pid, second->pid };

	(void)state;
	second->has_unknown_layout = true;
	options.pids = both;
	options.pid_count = 2;
	sampler_run(&options, &result);
	assert_int_equal(result.unknown_pid, second->pid);
	assert_string_equal(result.unknown_reason, "no row fits");
	assert_true(result.saw_luajit);
}

static void the_first_layout_and_all_roots_are_told(void **state)
{
	static struct vm_code vms[2];
	struct made_up_process *first = add(1, bursts), *second = add(1, bursts);
	const pid_t both[] = { first->pid, second->pid };

	(void)state;
	snprintf(vms[0].layout.name, sizeof(vms[0].layout.name), "a layout");
	snprintf(vms[1].layout.name, sizeof(vms[1].layout.name), "another");
	first->vm = &vms[0];
	second->vm = &vms[1];
	first->roots = "@/a/";
	second->roots = "@/b/";
	options.pids = both;
	options.pid_count = 2;
	sampler_run(&options, &result);
	assert_string_equal(result.layout, "a layout");
	assert_string_equal(result.roots, "@/a/@/b/");
	assert_int_equal(result.unknown_pid, 0);
}

static void found_processes_that_were_never_searched_are_counted(void **state)
{
	struct made_up_process *first = add(1, bursts), *late = add(1, bursts), *never = add(1, bursts);
	struct made_up_process *ended = add(1, bursts);

	(void)state;
	options.subprocesses = true;
	late->followed = never->followed = ended->followed = true;
	late->is_unread = never->is_unread = ended->is_unread = true;
	late->luajit_ns = 1000 * MS;
	never->luajit_ns = ended->luajit_ns = UINT64_MAX;
	ended->end_ns = 1000 * MS;
	run();
	assert_true(sum_of(first, 0)->samples > 300);
	assert_true(sum_of(late, 0)->samples > 100);
	assert_int_equal(result.unsearched, 2);
	assert_true(result.unsearched_pid == never->pid || result.unsearched_pid == ended->pid);
	assert_int_equal(result.left_out, 0);
}

static void of_those_that_were_never_searched_the_first_is_named(void **state)
{
	struct made_up_process *first = add(1, bursts), *never = add(1, bursts), *other = add(1, bursts);

	(void)state;
	options.subprocesses = true;
	never->followed = never->is_unread = other->followed = other->is_unread = true;
	never->luajit_ns = other->luajit_ns = UINT64_MAX;
	run();
	assert_true(sum_of(first, 0)->samples > 300);
	assert_int_equal(result.unsearched, 2);
	assert_int_equal(result.unsearched_pid, never->pid);
}

static void those_that_may_be_wanted_and_cannot_be_read_are_counted(void **state)
{
	struct made_up_process *first = add(1, bursts);

	(void)state;
	options.subprocesses = true;
	machine.unread_count = 2;
	machine.unread_pid = 4711;
	run();
	assert_true(sum_of(first, 0)->samples > 300);
	assert_int_equal(result.unsearched, 2);
	assert_int_equal(result.unsearched_pid, 4711);
	assert_int_equal(result.left_out, 0);
}

/* So has one that ljspy never met. */
static void found_processes_that_have_ended_by_the_second_look_are_not_counted(void **state)
{
	struct made_up_process *first = add(1, bursts), *brief = add(1, bursts);

	(void)state;
	options.subprocesses = true;
	brief->followed = brief->is_unread = true;
	brief->luajit_ns = UINT64_MAX;
	brief->end_ns = 10 * MS;
	run();
	assert_true(sum_of(first, 0)->samples > 300);
	assert_int_equal(machine.opens, 2); /* it was met */
	assert_int_equal(result.unsearched, 0);
}

static void a_found_process_that_refuses_is_left_out(void **state)
{
	struct made_up_process *first = add(1, bursts), *other = add(1, bursts), *native = add(1, bursts);

	(void)state;
	options.subprocesses = true;
	other->followed = native->followed = true;
	other->refusal = -EPERM;
	native->luajit_ns = UINT64_MAX;
	run();
	assert_int_equal(result.left_out, 1);
	assert_int_equal(result.left_out_pid, other->pid);
	assert_int_equal(result.left_out_error, -EPERM);
	assert_int_equal(sum_of(other, 0)->samples, 0);
	assert_true(sum_of(first, 0)->samples > 300);
	/* Who asked for it is told why there is nothing. */
	forget(state);
	make_up(state);
	first = add(1, bursts);
	first->refusal = -EPERM;
	options.subprocesses = true;
	options.pids = &first->pid;
	options.pid_count = 1;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_FAILED);
	assert_int_equal(result.pid, first->pid);
	assert_int_equal(result.error, -EPERM);
}

static void a_process_that_there_are_no_files_for_is_a_failure(void **state)
{
	struct made_up_process *process = add(1, bursts);

	(void)state;
	machine.few_files_end_ns = UINT64_MAX;
	options.pids = &process->pid;
	options.pid_count = 1;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_FAILED);
	assert_int_equal(result.pid, process->pid);
	assert_int_equal(result.error, -EMFILE);
	assert_int_equal(result.figures.samples, 0);
}

static void a_process_that_is_gone_is_a_failure(void **state)
{
	struct made_up_process *process = add(1, bursts);

	(void)state;
	process->end_ns = 1;
	options.pids = &process->pid;
	options.pid_count = 1;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_FAILED);
	assert_int_equal(result.pid, process->pid);
	assert_int_equal(result.error, -ESRCH);
	assert_int_equal(result.figures.duration_ns, 0);
}

/* What was found is sampled only while it runs LuaJIT; what was asked for, whatever it runs. */
static void another_program_is_looked_at_anew(void **state)
{
	const uint64_t exec_ns = UINT64_C(3) * NS_PER_SECOND, luajit_ns = UINT64_C(6) * NS_PER_SECOND;
	struct made_up_process *first = add(1, bursts), *found = add(1, bursts);
	uint64_t begin_ns, with_luajit_ns;

	(void)state;
	options.subprocesses = true;
	found->followed = true;
	first->exec_ns = found->exec_ns = exec_ns;
	first->exec_luajit_ns = found->exec_luajit_ns = luajit_ns;
	begin_ns = run();
	assert_int_equal(machine.opens, 4);
	with_luajit_ns = made_up_cpu_ns(found, exec_ns) - made_up_cpu_ns(found, begin_ns) +
			 made_up_cpu_ns(found, machine.now_ns) - made_up_cpu_ns(found, luajit_ns);
	/* ljspy looks for it about once a second. */
	assert_in_range(sum_of(found, 0)->cpu_ns, with_luajit_ns - 400 * MS, with_luajit_ns + RESERVE_NS);
	assert_string_equal(sum_of(found, 0)->told[THREAD_RUNNING].process, "other");
	/* One that was asked for is sampled all the time. */
	forget(state);
	make_up(state);
	first = add(1, bursts);
	first->exec_ns = exec_ns;
	first->exec_luajit_ns = luajit_ns;
	begin_ns = run();
	assert_int_equal(machine.opens, 2);
	assert_near(sum_of(first, 0)->cpu_ns,
		    made_up_cpu_ns(first, machine.now_ns) - made_up_cpu_ns(first, begin_ns), 2 * RESERVE_NS);
}

static char *const command[] = { (char[]){ "luajit" }, NULL };

static void a_command_is_started_and_its_end_is_told(void **state)
{
	struct made_up_process *process = add(1, bursts);

	(void)state;
	options.launch = command;
	process->end_ns = UINT64_C(2) * NS_PER_SECOND;
	process->luajit_ns = 100 * MS; /* it takes a while to load it */
	machine.exit_known = true;
	machine.exit_status = 3 << 8;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_TARGETS_ENDED);
	assert_true(result.launched);
	assert_int_equal(result.pid, process->pid);
	assert_true(result.exit_known);
	assert_int_equal(result.exit_status, 3 << 8);
	assert_true(result.saw_luajit);
	assert_true(sum_of(process, 0)->samples > 60);
	assert_int_equal(machine.cancels, 0);
	/* One that an earlier run started is not started again. */
	forget(state);
	make_up(state);
	process = add(1, bursts);
	options.launch = command;
	options.launched_pid = process->pid;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_true(result.launched);
	assert_int_equal(result.pid, process->pid);
	assert_false(result.exit_known);
	assert_int_equal(machine.launches, 0);
	assert_true(sum_of(process, 0)->samples > 300);
}

/* What a command's children leave behind is ljspy's, where it follows them. */
static void orphans_of_a_command_come_to_ljspy_only_where_they_are_followed(void **state)
{
	for (int follows = 0; follows < 2; follows++) {
		int is_subreaper = -1;

		forget(state);
		make_up(state);
		add(1, bursts);
		options.launch = command;
		options.subprocesses = follows;
		options.duration_ns = NS_PER_SECOND;
		sampler_run(&options, &result);
		assert_true(result.launched);
		assert_int_equal(machine.launches, 1);
		assert_int_equal(prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper), 0);
		assert_int_equal(is_subreaper, follows);
	}
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void a_command_that_cannot_be_run_is_a_failure(void **state)
{
	struct made_up_process *process = add(1, bursts);

	(void)state;
	options.launch = command;
	machine.launch_error = -EAGAIN;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_FAILED);
	assert_int_equal(result.error, -EAGAIN);
	assert_int_equal(result.pid, 0);
	machine.launch_error = 0;
	machine.go_error = -ENOENT;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_FAILED);
	assert_int_equal(result.error, -ENOENT);
	assert_int_equal(result.pid, process->pid);
	assert_false(result.launched);
	assert_int_equal(result.begin_ns, 0);
	assert_int_equal(result.figures.duration_ns, 0);
	assert_int_equal(machine.cancels, 0);
	/* It is not left behind if it cannot be traced. */
	process->end_ns = 1;
	sampler_run(&options, &result);
	assert_int_equal(result.error, -ESRCH);
	assert_int_equal(machine.cancels, 1);
}

static void a_command_that_runs_another_lua_is_told_from_others(void **state)
{
	struct made_up_process *process = add(1, bursts);

	(void)state;
	options.launch = command;
	process->luajit_ns = UINT64_MAX;
	machine.has_new_modules = true;
	machine.other_lua = "5.4";
	sampler_run(&options, &result);
	assert_false(result.saw_luajit);
	assert_string_equal(result.other_lua, "5.4");
	/* It is what the command means to run only while there is no LuaJIT. */
	process->luajit_ns = 0;
	sampler_run(&options, &result);
	assert_string_equal(result.other_lua, "");
	process->luajit_ns = UINT64_MAX;
	machine.has_new_modules = false; /* those that are known were searched */
	sampler_run(&options, &result);
	assert_string_equal(result.other_lua, "");
}

/*---- Whoever watches ----*/

static void a_signal_interrupts_it(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		uint64_t begin_ns;

		forget(state);
		make_up(state);
		add(1, bursts);
		machine.signal = signals[i];
		machine.signal_ns = UINT64_C(2) * NS_PER_SECOND;
		begin_ns = run();
		if (signals[i] == SIGCHLD) {
			assert_int_equal(result.end, SAMPLER_DURATION_OVER);
			continue;
		}
		assert_int_equal(result.end, SAMPLER_INTERRUPTED);
		assert_near(machine.now_ns, UINT64_C(2) * NS_PER_SECOND, 210 * MS);
		assert_int_equal(result.figures.duration_ns, machine.now_ns - begin_ns);
	}
}

/* What it is told, and how often it lets the sampler go on or come back. */
static struct {
	unsigned int told, told_max;
	uint64_t samples;      /* as told last */
	uint64_t let_go_at_ns; /* 0: never */
	uint64_t away_ns;      /* how long each absence takes */
	uint64_t waited_ns;    /* at most */
	unsigned int absences;
	bool comes_back, rested, busy;
	pid_t bound[2]; /* whom it was told of last */
	unsigned int bound_count;
} watcher;

static bool note_progress(void *context, const struct figures *so_far)
{
	(void)context;
	assert_true(so_far->samples >= watcher.samples);
	watcher.samples = so_far->samples;
	return ++watcher.told < watcher.told_max;
}

static bool may_go_on(void *context)
{
	(void)context;
	return !watcher.let_go_at_ns || machine.now_ns < watcher.let_go_at_ns;
}

static void note_rest(void *context, bool rests, uint64_t wait_ns)
{
	(void)context;
	watcher.waited_ns += wait_ns;
	watcher.rested |= rests;
	watcher.busy |= !rests;
}

static void note_bound(void *context, pid_t tid)
{
	(void)context;
	watcher.bound[watcher.bound_count++ % 2] = tid;
}

static bool stay_away(void *context)
{
	(void)context;
	watcher.absences++;
	watcher.let_go_at_ns = 0;
	machine.now_ns += watcher.away_ns;
	return watcher.comes_back;
}

static const struct sampler_watch watch = { .may_go_on = may_go_on, .rests = note_rest, .binds = note_bound };
static const struct sampler_breaks breaks = { .stay_away = stay_away };

/* Nothing is read of it then: that might never come to an end. */
static void the_wait_for_an_execve_ends_with_the_run(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		static const enum sampler_end ends[] = { SAMPLER_FAILED, SAMPLER_INTERRUPTED,
							 SAMPLER_LET_GO };

		forget(state);
		make_up(state);
		memset(&watcher, 0, sizeof(watcher));
		options.pids = &add(1, bursts)->pid;
		options.pid_count = 1;
		options.awaits_exec = true;
		options.duration_ns = NS_PER_SECOND;
		options.watch = &watch;
		machine.signal = i == 1 ? SIGINT : 0;
		machine.signal_ns = machine.now_ns + 500 * MS;
		watcher.let_go_at_ns = i == 2 ? machine.now_ns + 500 * MS : 0;
		asks_in_exec = 1000;
		sampler_run(&options, &result);
		assert_int_equal(result.end, ends[i]);
		assert_int_equal(result.error, i == 0 ? -ETIMEDOUT : 0);
		assert_in_range(asks_in_exec, i == 0 ? 980 : 990, 999);
		assert_false(result.has_attached);
		assert_int_equal(machine.opens, 0);
		asks_in_exec = 0;
	}
}

static void progress_is_told_each_second_and_may_end_it(void **state)
{
	struct made_up_process *process = add(1, bursts);
	uint64_t begin_ns;

	(void)state;
	memset(&watcher, 0, sizeof(watcher));
	watcher.told_max = 100;
	options.progress = note_progress;
	run();
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_in_range(watcher.told, 10, 11);
	assert_true(watcher.samples > sum_of(process, 0)->samples * 8 / 10);

	forget(state);
	make_up(state);
	add(1, bursts);
	memset(&watcher, 0, sizeof(watcher));
	watcher.told_max = 4;
	options.progress = note_progress;
	begin_ns = run();
	assert_int_equal(result.end, SAMPLER_TOLD_TO_END);
	assert_int_equal(watcher.told, 4);
	assert_near(machine.now_ns - begin_ns, UINT64_C(3) * NS_PER_SECOND, 200 * MS);
}

static const struct function *kept;
static unsigned int keeps;

static void keep(void *context)
{
	(void)context;
	keeps++;
	functions_keep(kept);
}

/* A target that makes new functions all the time costs no memory for those that nothing shows any more. */
static void functions_are_dropped_when_there_are_too_many(void **state)
{
	enum { FEW = 100, MANY = 40000, ALL_BYTES = 3 << 20 };
	const struct function wanted = { .kind = FRAME_LUA, .name = "wanted", .file = "@kept.lua" };

	(void)state;
	for (int round = 0; round < 2; round++) {
		forget(state);
		make_up(state);
		add(1, bursts);
		memset(&watcher, 0, sizeof(watcher));
		watcher.told_max = 100;
		options.progress = note_progress;
		options.keep = keep;
		kept = functions_intern(options.functions, &wanted);
		keeps = 0;
		for (uint32_t i = 0; i < (round ? MANY : FEW); i++) {
			const struct function made = {
				.kind = FRAME_LUA, .firstline = i, .name = "made up", .file = "@made.lua"
			};

			assert_non_null(functions_intern(options.functions, &made));
		}
		assert_true((functions_size(options.functions) > ALL_BYTES) == round);
		run();
		assert_true(sum_of(&machine.processes[0], 0)->samples > 300);
		assert_int_equal(keeps, round);
		assert_true(functions_size(options.functions) < ALL_BYTES / 2);
		assert_ptr_equal(functions_intern(options.functions, &wanted), kept);
	}
}

static void rest_is_told_while_no_target_runs(void **state)
{
	(void)state;
	memset(&watcher, 0, sizeof(watcher));
	options.watch = &watch;
	add(1, (struct made_up_thread){ .run_ns = 100 * MS, .sleep_ns = UINT64_C(20) * NS_PER_SECOND });
	options.duration_ns = UINT64_C(60) * NS_PER_SECOND;
	run();
	assert_true(watcher.rested && watcher.busy);
	/* The thread that traces, which ends after that. */
	assert_true(watcher.bound[0] > 0 && watcher.bound[0] != gettid());
	assert_int_equal(watcher.bound_count, 2);
	assert_int_equal(watcher.bound[1], 0);

	forget(state);
	make_up(state);
	memset(&watcher, 0, sizeof(watcher));
	options.watch = &watch;
	add(1, bursts);
	run();
	assert_true(watcher.busy && !watcher.rested);
	assert_in_range(watcher.waited_ns, UINT64_C(8) * NS_PER_SECOND, UINT64_C(11) * NS_PER_SECOND);
}

/* What a target does while the sampler has let go of it is nobody's sample. */
static void time_away_from_the_targets_does_not_count(void **state)
{
	static const pid_t first = FIRST_PID;
	struct made_up_process *process = add(1, bursts);
	uint64_t begin_ns = machine.now_ns, gone_ns, back_ns;

	(void)state;
	memset(&watcher, 0, sizeof(watcher));
	watcher.let_go_at_ns = UINT64_C(4) * NS_PER_SECOND;
	watcher.away_ns = UINT64_C(3) * NS_PER_SECOND;
	watcher.comes_back = true;
	gone_ns = watcher.let_go_at_ns;
	back_ns = gone_ns + watcher.away_ns;
	options.watch = &watch;
	options.pids = &first;
	options.pid_count = 1;
	sampler_run_resumed(&options, &breaks, &result);
	assert_int_equal(watcher.absences, 1);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_near(machine.now_ns - begin_ns, options.duration_ns, 100 * MS);
	assert_near(result.figures.duration_ns, options.duration_ns, 100 * MS);
	assert_near(sum_of(process, 0)->cpu_ns + of_no_thread.cpu_ns,
		    made_up_cpu_ns(process, gone_ns) - made_up_cpu_ns(process, begin_ns) +
			    made_up_cpu_ns(process, machine.now_ns) - made_up_cpu_ns(process, back_ns),
		    2 * RESERVE_NS);
	assert_int_equal(result.figures.samples, sum_of(process, 0)->samples + of_no_thread.samples);
	assert_true(fabs(result.figures.rate_reached_hz / RATE_HZ - 1) < 0.1);

	forget(state);
	make_up(state);
	add(1, bursts);
	memset(&watcher, 0, sizeof(watcher));
	watcher.let_go_at_ns = UINT64_C(4) * NS_PER_SECOND;
	options.watch = &watch;
	options.pids = &first;
	options.pid_count = 1;
	sampler_run_resumed(&options, &breaks, &result);
	assert_int_equal(result.end, SAMPLER_INTERRUPTED);
	assert_near(result.figures.duration_ns, UINT64_C(4) * NS_PER_SECOND, 100 * MS);
}

static void idle_target_is_left_to_its_alarm(void **state)
{
	struct made_up_process *process = add(
		1, (struct made_up_thread){ .run_ns = 100 * MS, .sleep_ns = UINT64_C(20) * NS_PER_SECOND });

	(void)state;
	options.duration_ns = UINT64_C(100) * NS_PER_SECOND;
	run();
	assert_true(machine.alarms > 0);
	/* A second long each, but for the five in which a target counts as busy. */
	assert_true(machine.waits < 30 * (RATE_HZ + 1) + 100);
	assert_true(sum_of(process, 0)->samples > 4 * 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_sample_has_the_time_of_its_stop, make_up, forget),
		cmocka_unit_test_setup_teardown(samples_stand_for_all_cpu_time, make_up, forget),
		cmocka_unit_test_setup_teardown(each_part_of_a_burst_gets_its_time, make_up, forget),
		cmocka_unit_test_setup_teardown(each_of_several_threads_gets_its_own_time, make_up, forget),
		cmocka_unit_test_setup_teardown(threads_that_sleep_for_long_are_left_alone_until_they_run,
						make_up, forget),
		cmocka_unit_test_setup_teardown(looks_open_no_file, make_up, forget),
		cmocka_unit_test_setup_teardown(only_a_process_that_was_sampled_is_awaited_in_its_execve,
						make_up, forget),
		cmocka_unit_test_setup_teardown(nothing_is_sampled_in_the_middle_of_an_execve, make_up,
						forget),
		cmocka_unit_test_setup_teardown(thread_has_its_cpu_time_from_its_start_on, make_up, forget),
		cmocka_unit_test_setup_teardown(time_before_the_beginning_does_not_count, make_up, forget),
		cmocka_unit_test_setup_teardown(a_copy_that_comes_to_nothing_changes_no_sleep, make_up,
						forget),
		cmocka_unit_test_setup_teardown(
			a_wait_before_a_late_stop_puts_off_the_look_that_would_have_come_meanwhile, make_up,
			forget),
		cmocka_unit_test_setup_teardown(thread_that_stops_late_is_sampled_where_it_stops, make_up,
						forget),
		cmocka_unit_test_setup_teardown(a_late_stop_is_taken_beside_a_process_without_luajit, make_up,
						forget),
		cmocka_unit_test_setup_teardown(a_wait_before_a_late_stop_puts_no_look_off, make_up, forget),
		cmocka_unit_test_setup_teardown(waits_that_no_look_met_are_unknown_once_the_thread_sleeps,
						make_up, forget),
		cmocka_unit_test_setup_teardown(thread_that_bears_no_stop_is_sampled_without_one, make_up,
						forget),
		cmocka_unit_test_setup_teardown(without_stops_samples_are_taken_beside_the_threads, make_up,
						forget),
		cmocka_unit_test_setup_teardown(a_stack_is_known_beside_those_of_other_threads, make_up,
						forget),
		cmocka_unit_test_setup_teardown(a_stack_that_cannot_be_read_beside_its_thread_is_lost,
						make_up, forget),
		cmocka_unit_test_setup_teardown(a_thread_is_held_for_as_long_as_its_copy_takes, make_up,
						forget),
		cmocka_unit_test_setup_teardown(samples_tell_the_turn_of_the_loop_or_the_sleeps, make_up,
						forget),
		cmocka_unit_test_setup_teardown(samples_tell_what_was_found_on_the_stack, make_up, forget),
		cmocka_unit_test_setup_teardown(what_was_allocated_is_told_once, make_up, forget),
		cmocka_unit_test_setup_teardown(a_sleep_that_cannot_be_read_is_lost, make_up, forget),
		cmocka_unit_test_setup_teardown(a_thread_that_waits_for_a_cpu_in_a_call_is_missed, make_up,
						forget),
		cmocka_unit_test_setup_teardown(a_target_that_only_waits_for_a_cpu_is_not_idle, make_up,
						forget),
		cmocka_unit_test_setup_teardown(targets_that_are_stopped_in_the_end_are_told, make_up,
						forget),
		cmocka_unit_test_setup_teardown(a_thread_that_shares_its_cpu_is_visited_too, make_up, forget),
		cmocka_unit_test_setup_teardown(late_stops_that_meet_calls_are_counted, make_up, forget),
		cmocka_unit_test_setup_teardown(an_unknown_layout_is_named_with_its_reason, make_up, forget),
		cmocka_unit_test_setup_teardown(the_first_layout_and_all_roots_are_told, make_up, forget),
		cmocka_unit_test_setup_teardown(a_found_process_that_refuses_is_left_out, make_up, forget),
		cmocka_unit_test_setup_teardown(found_processes_that_were_never_searched_are_counted, make_up,
						forget),
		cmocka_unit_test_setup_teardown(of_those_that_were_never_searched_the_first_is_named, make_up,
						forget),
		cmocka_unit_test_setup_teardown(those_that_may_be_wanted_and_cannot_be_read_are_counted,
						make_up, forget),
		cmocka_unit_test_setup_teardown(
			found_processes_that_have_ended_by_the_second_look_are_not_counted, make_up, forget),
		cmocka_unit_test_setup_teardown(a_process_that_there_are_no_files_for_is_a_failure, make_up,
						forget),
		cmocka_unit_test_setup_teardown(a_process_that_is_gone_is_a_failure, make_up, forget),
		cmocka_unit_test_setup_teardown(another_program_is_looked_at_anew, make_up, forget),
		cmocka_unit_test_setup_teardown(a_command_is_started_and_its_end_is_told, make_up, forget),
		cmocka_unit_test_setup_teardown(
			orphans_of_a_command_come_to_ljspy_only_where_they_are_followed, make_up, forget),
		cmocka_unit_test_setup_teardown(a_command_that_cannot_be_run_is_a_failure, make_up, forget),
		cmocka_unit_test_setup_teardown(a_command_that_runs_another_lua_is_told_from_others, make_up,
						forget),
		cmocka_unit_test_setup_teardown(a_signal_interrupts_it, make_up, forget),
		cmocka_unit_test_setup_teardown(rate_is_that_of_cpu_time, make_up, forget),
		cmocka_unit_test(samples_weigh_alike_however_much_is_pending),
		cmocka_unit_test(first_samples_wait_for_no_reserve),
		cmocka_unit_test(last_sample_takes_the_reserve),
		cmocka_unit_test(account_in_debt_gives_nothing),
		cmocka_unit_test_setup_teardown(wall_clock_tells_all_of_each_threads_time, make_up, forget),
		cmocka_unit_test_setup_teardown(wait_for_a_cpu_at_the_end_is_told, make_up, forget),
		cmocka_unit_test_setup_teardown(sleep_before_the_last_run_is_told, make_up, forget),
		cmocka_unit_test_setup_teardown(sleep_of_a_native_thread_is_told_once_it_runs, make_up,
						forget),
		cmocka_unit_test_setup_teardown(sleep_below_lua_is_told_without_a_run, make_up, forget),
		cmocka_unit_test_setup_teardown(no_sleep_is_told_by_a_short_copy, make_up, forget),
		cmocka_unit_test_setup_teardown(missed_ticks_are_those_that_ljspy_overslept, make_up, forget),
		cmocka_unit_test_setup_teardown(a_wait_tells_that_nothing_came_if_it_was_not_cut_short,
						make_up, forget),
		cmocka_unit_test_setup_teardown(a_thread_without_calls_keeps_its_cpu, make_up, forget),
		cmocka_unit_test_setup_teardown(ljspy_stays_where_a_look_finds_nothing_to_do, make_up,
						forget),
		cmocka_unit_test_setup_teardown(looks_at_a_thread_that_calls_are_awaited_on_its_cpu, make_up,
						forget),
		cmocka_unit_test_setup_teardown(found_process_is_sampled_while_it_runs_luajit, make_up,
						forget),
		cmocka_unit_test_setup_teardown(recording_ends_with_its_target, make_up, forget),
		cmocka_unit_test_setup_teardown(recording_goes_on_until_its_last_target_ends, make_up,
						forget),
		cmocka_unit_test_setup_teardown(process_without_luajit_is_named, make_up, forget),
		cmocka_unit_test_setup_teardown(one_that_is_unreadable_is_not_looked_at, make_up, forget),
		cmocka_unit_test_setup_teardown(those_left_out_from_the_beginning_are_listed, make_up,
						forget),
		cmocka_unit_test_setup_teardown(where_none_of_several_can_be_sampled_it_ends_at_once, make_up,
						forget),
		cmocka_unit_test_setup_teardown(of_several_those_that_cannot_be_sampled_are_left_out, make_up,
						forget),
		cmocka_unit_test_setup_teardown(the_wait_for_an_execve_ends_with_the_run, make_up, forget),
		cmocka_unit_test_setup_teardown(progress_is_told_each_second_and_may_end_it, make_up, forget),
		cmocka_unit_test_setup_teardown(functions_are_dropped_when_there_are_too_many, make_up,
						forget),
		cmocka_unit_test_setup_teardown(rest_is_told_while_no_target_runs, make_up, forget),
		cmocka_unit_test_setup_teardown(time_away_from_the_targets_does_not_count, make_up, forget),
		cmocka_unit_test_setup_teardown(idle_target_is_left_to_its_alarm, make_up, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
