/* SPDX-License-Identifier: MIT */
/* Moments in which no thread of a process runs, with threads that are made up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/threads/hold.h"
#include "src/linux/threads/may_stop.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

enum { MS = 1000 * 1000, THREADS = 3, MANY = 130, FIRST_TID = 100, FAILURES_MAX = 1000 };

/* What each thread does, and what has become of it. */
static struct made_up {
	struct thread thread;
	struct tracee tracee;
	enum may_stop may_stop;
	int stop_error;
	uint64_t stops_after_ns; /* it has no CPU until then */
	enum thread_state state;
	struct thread_call call;
	int state_error, measure_error;
	uint64_t used_ns;
	bool stopped;
	unsigned int stops, resumes, noted, noted_resumed, measured;
} made_up[MANY];

static uint64_t look_ns; /* so long it takes to look at one that sleeps */

static struct made_up *stops_meanwhile; /* it gets a CPU while another one is awaited */

static size_t thread_total;
static bool turn_is_used_up;
static unsigned int polls, renewals, rests;
static uint64_t rested_ns, now_ns, last_rest_ns;
static unsigned int equal_rests; /* as long as the one before */

/* What happens when the data has been read. */
static void (*while_held)(void);

INSTEAD_OF(clock_gettime);
INSTEAD_OF(threads_count);
INSTEAD_OF(threads_at);
INSTEAD_OF(thread_may_stop);
INSTEAD_OF(thread_measure);
INSTEAD_OF(thread_read_state);
INSTEAD_OF(thread_note_stop);
INSTEAD_OF(thread_note_resumed);
INSTEAD_OF(tracer_stop);
INSTEAD_OF(tracer_registers);
INSTEAD_OF(tracer_resume);
INSTEAD_OF(tracer_has_held_late);
INSTEAD_OF(tracer_poll);
INSTEAD_OF(tracer_turn);
INSTEAD_OF(own_turn_is_used_up);
INSTEAD_OF(own_turn_renew);
INSTEAD_OF(own_turn_wait);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	*ret_time = (struct timespec){ .tv_sec = (time_t)(now_ns / NS_PER_SECOND),
				       .tv_nsec = (long)(now_ns % NS_PER_SECOND) };
	return 0;
}

size_t __wrap_threads_count(const struct threads *threads)
{
	(void)threads;
	return thread_total;
}

struct thread *__wrap_threads_at(const struct threads *threads, size_t index)
{
	(void)threads;
	return &made_up[index].thread;
}

static struct made_up *of(const struct thread *thread)
{
	return &made_up[thread->tid - FIRST_TID];
}

static struct made_up *of_tracee(const struct tracee *tracee)
{
	return &made_up[tracee->tid - FIRST_TID];
}

enum may_stop __wrap_thread_may_stop(struct threads *threads, struct thread *thread, struct own_turn *turn)
{
	(void)threads;
	(void)turn;
	return of(thread)->may_stop;
}

int __wrap_thread_measure(struct threads *threads, struct thread *thread, uint64_t *ret_used_ns)
{
	(void)threads;
	/* The first time it counts from then on. */
	*ret_used_ns = of(thread)->measured++ ? of(thread)->used_ns : 1000;
	return of(thread)->measure_error;
}

int __wrap_thread_read_state(struct threads *threads, struct thread *thread, enum thread_state *ret_state,
			     struct thread_call *ret_call)
{
	(void)threads;
	if (of(thread)->state_error)
		return of(thread)->state_error;
	now_ns += look_ns;
	*ret_state = of(thread)->state;
	*ret_call = of(thread)->call;
	return 0;
}

void __wrap_thread_note_stop(struct thread *thread, const struct registers *registers)
{
	assert_int_equal(registers->pc, thread->tid);
	/* While all are still held: the first to go on may close the file of another one's call. */
	for (size_t i = 0; i < thread_total; i++)
		assert_int_equal(made_up[i].resumes, made_up[i].stops - made_up[i].stopped);
	assert_true(of(thread)->stopped);
	of(thread)->noted++;
}

void __wrap_thread_note_resumed(struct thread *thread, const struct registers *registers)
{
	assert_int_equal(registers->pc, thread->tid);
	assert_false(of(thread)->stopped);
	assert_int_equal(++of(thread)->noted_resumed, of(thread)->noted);
}

int __wrap_tracer_stop(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns)
{
	(void)tracer;
	assert_in_range(timeout_ns, 1, UINT32_MAX);
	if (of_tracee(tracee)->stop_error == -ETIMEDOUT ||
	    of_tracee(tracee)->stops_after_ns > now_ns + timeout_ns)
		now_ns += timeout_ns;
	else if (of_tracee(tracee)->stops_after_ns > now_ns)
		now_ns = of_tracee(tracee)->stops_after_ns;
	if (stops_meanwhile && timeout_ns > MS && stops_meanwhile != of_tracee(tracee)) {
		now_ns -= timeout_ns / 2; /* the wait ends then */
		stops_meanwhile->tracee.state = TRACEE_HELD;
		stops_meanwhile->stop_error = 0;
		stops_meanwhile->stops_after_ns = now_ns;
		stops_meanwhile = NULL;
	}
	if (of_tracee(tracee)->stop_error)
		return of_tracee(tracee)->stop_error;
	if (of_tracee(tracee)->stops_after_ns > now_ns)
		return -ETIMEDOUT;
	tracee->state = TRACEE_HELD;
	tracee->stopped_ns = of_tracee(tracee)->stops_after_ns ? of_tracee(tracee)->stops_after_ns
							       : tracee->stopped_ns;
	of_tracee(tracee)->stopped = true;
	of_tracee(tracee)->stops++;
	return 0;
}

int __wrap_tracer_registers(struct tracee *tracee, struct registers *ret_registers)
{
	assert_true(of_tracee(tracee)->stopped);
	ret_registers->pc = (uint64_t)of_tracee(tracee)->thread.tid;
	return 0;
}

void __wrap_tracer_resume(struct tracer *tracer, struct tracee *tracee)
{
	(void)tracer;
	assert_true(of_tracee(tracee)->stopped);
	of_tracee(tracee)->stopped = false;
	of_tracee(tracee)->resumes++;
	tracee->state = TRACEE_RUNNING;
}

bool __wrap_tracer_has_held_late(struct tracer *tracer)
{
	(void)tracer;
	return false;
}

bool __wrap_tracer_poll(struct tracer *tracer)
{
	(void)tracer;
	polls++;
	return false;
}

struct own_turn *__wrap_tracer_turn(struct tracer *tracer)
{
	(void)tracer;
	return NULL;
}

bool __wrap_own_turn_is_used_up(const struct own_turn *turn)
{
	(void)turn;
	return turn_is_used_up;
}

void __wrap_own_turn_renew(struct own_turn *turn)
{
	(void)turn;
	renewals++;
	turn_is_used_up = false;
}

int __wrap_own_turn_wait(struct own_turn *turn, const sigset_t *signals, siginfo_t *ret_info,
			 const struct timespec *timeout)
{
	(void)turn;
	(void)ret_info;
	for (size_t i = 0; i < THREADS; i++)
		assert_false(made_up[i].stopped); /* nothing is held meanwhile */
	for (int signal = 1; signal < 32; signal++)
		assert_int_equal(sigismember(signals, signal), 0);
	rests++;
	equal_rests += (uint64_t)timeout->tv_nsec == last_rest_ns;
	last_rest_ns = (uint64_t)timeout->tv_nsec;
	rested_ns += (uint64_t)timeout->tv_sec * 1000000000 + last_rest_ns;
	return -1;
}

/* Thread 0 runs, 1 sleeps in a call, 2 may wait for a CPU. */
static struct hold *begin(void)
{
	static const enum may_stop may[THREADS] = { MAY_STOP, MAY_NOT_SLEEPS, MAY_STOP_WAITING };
	struct hold *hold = hold_new(NULL, NULL);

	assert_non_null(hold);
	memset(made_up, 0, sizeof(made_up));
	for (size_t i = 0; i < THREADS; i++) {
		made_up[i].thread = (struct thread){ .tid = FIRST_TID + (pid_t)i,
						     .tracee = &made_up[i].tracee };
		made_up[i].tracee = (struct tracee){ .tid = FIRST_TID + (pid_t)i,
						     .stopped_ns = 1 + i }; /* long ago */
		made_up[i].may_stop = may[i];
		made_up[i].state = THREAD_BLOCKED;
		made_up[i].call = (struct thread_call){ .known = true, .number = 7, .sp = 0x1000 };
	}
	thread_total = THREADS;
	turn_is_used_up = false;
	polls = renewals = rests = 0;
	rested_ns = last_rest_ns = 0;
	equal_rests = 0;
	stops_meanwhile = NULL;
	look_ns = 0;
	now_ns = 5000;
	while_held = NULL;
	return hold;
}

static unsigned int reads, undos;
static struct hold *held;
static bool has_stopped;

static void read_data(void *context)
{
	assert_ptr_equal(context, &reads);
	reads++;
	has_stopped = hold_has_stopped(held);
	for (size_t i = 0; i < thread_total; i++) {
		const struct registers *registers = hold_registers(held, made_up[i].thread.tid);

		assert_int_equal(registers != NULL, made_up[i].stopped);
		if (registers)
			assert_int_equal(registers->pc, made_up[i].thread.tid);
	}
	assert_null(hold_registers(held, 99));
	if (while_held)
		while_held();
}

static void undo(void *context)
{
	assert_ptr_equal(context, &reads);
	undos++;
}

static unsigned int go_on_left;

static bool goes_on(void *context)
{
	assert_ptr_equal(context, &go_on_left);
	return go_on_left-- > 0;
}

static bool hold_once(struct hold *hold)
{
	held = hold;
	reads = undos = 0;
	return hold_while(hold, read_data, undo, &reads);
}

static void those_that_run_are_stopped_and_those_that_sleep_are_not(void **state)
{
	struct hold *hold = begin();

	(void)state;
	assert_true(hold_once(hold));
	assert_int_equal(reads, 1);
	assert_int_equal(undos, 0);
	assert_int_equal(polls, 1);
	assert_int_equal(renewals, 0);
	assert_true(has_stopped);
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(made_up[i].stops, i != 1);
		assert_int_equal(made_up[i].resumes, i != 1);
		assert_int_equal(made_up[i].noted, i != 1);
		assert_int_equal(made_up[i].noted_resumed, i != 1);
	}
	hold_free(hold);
	hold_free(NULL);
}

/* Only the sleeping thread has a stack pointer. */
static void find_on_stack(void)
{
	struct registers registers;
	pid_t tid = 0;

	assert_false(hold_find_on_stack(held, 0xfff, &tid, &registers));
	assert_true(hold_find_on_stack(held, 0x1000, &tid, &registers));
	assert_int_equal(tid, FIRST_TID + 1);
	assert_int_equal(registers.sp, 0x1000);
	assert_int_equal(registers.unknown, REGISTERS_ALL_BUT_PC_AND_SP);
}

static void who_is_on_a_stack_is_known(void **state)
{
	struct hold *hold = begin();

	(void)state;
	while_held = find_on_stack;
	assert_true(hold_once(hold));
	assert_int_equal(reads, 1);
	hold_free(hold);
}

static void two_seconds_pass(void)
{
	now_ns += 2 * (uint64_t)NS_PER_SECOND;
}

/* From when the first one stopped; then they run on for as long. */
static void how_long_it_was_held_is_known(void **state)
{
	struct hold *hold = begin();

	(void)state;
	while_held = two_seconds_pass;
	made_up[0].tracee.stopped_ns = 4000;
	made_up[2].tracee.stopped_ns = 4900;
	assert_true(hold_once(hold));
	assert_int_equal(hold_count(hold), 1);
	assert_int_equal(hold_longest_ns(hold), 2000001000);
	assert_int_equal(hold_total_ns(hold), 2000001000);
	assert_int_equal(rested_ns, 2000001000);
	assert_int_equal(rests, 1);
	/* A shorter one. */
	while_held = NULL;
	made_up[0].tracee.stopped_ns = now_ns - 300;
	made_up[2].tracee.stopped_ns = now_ns - 200;
	assert_true(hold_once(hold));
	assert_int_equal(hold_count(hold), 2);
	assert_int_equal(hold_longest_ns(hold), 2000001000);
	assert_int_equal(hold_total_ns(hold), 2000001300);
	assert_int_equal(rested_ns, 2000001300);
	assert_true(hold_once(hold));
	assert_int_equal(hold_total_ns(hold), 2000001600);
	/* One that gives up is one, too. */
	made_up[2].stop_error = -ETIMEDOUT;
	hold_go_on_while(hold, goes_on, &go_on_left);
	go_on_left = 1;
	assert_false(hold_once(hold));
	assert_int_equal(hold_count(hold), 4);
	assert_in_range(hold_total_ns(hold), 2020001600, 2020001900);
	hold_count_anew(hold);
	assert_int_equal(hold_count(hold) + hold_longest_ns(hold) + hold_total_ns(hold), 0);
	hold_free(hold);
}

static void none_stands_still_while_those_that_sleep_are_looked_at(void **state)
{
	struct hold *hold = begin();

	(void)state;
	look_ns = 100 * MS;
	made_up[2].may_stop = MAY_NOT_SLEEPS;
	made_up[0].stops_after_ns = now_ns + 2 * look_ns;
	assert_true(hold_once(hold));
	assert_int_equal(made_up[0].stops, 1);
	assert_int_equal(hold_longest_ns(hold), 0);
	hold_free(hold);
}

static void add_sleepers(void)
{
	for (size_t i = THREADS; i < MANY; i++) {
		made_up[i] = made_up[1];
		made_up[i].thread.tid = FIRST_TID + (pid_t)i;
	}
	thread_total = MANY;
}

/* A signal's thread stands still until then. */
static void signals_are_passed_on_while_many_are_looked_at(void **state)
{
	struct hold *hold = begin();

	(void)state;
	add_sleepers();
	assert_true(hold_once(hold));
	/* Before it is held, and afterwards. */
	assert_int_equal(polls, 1 + 2 * (MANY / 64));
	hold_free(hold);
}

static void a_process_that_sleeps_is_held_without_a_stop(void **state)
{
	struct hold *hold = begin();

	(void)state;
	made_up[0].may_stop = made_up[2].may_stop = MAY_NOT_SLEEPS;
	assert_true(hold_once(hold));
	assert_int_equal(reads, 1);
	assert_false(has_stopped);
	assert_int_equal(hold_count(hold), 0);
	assert_int_equal(hold_longest_ns(hold), 0);
	assert_int_equal(hold_total_ns(hold), 0);
	hold_free(hold);
}

static void a_turn_that_is_used_up_is_renewed_first(void **state)
{
	struct hold *hold = begin();

	(void)state;
	turn_is_used_up = true;
	assert_true(hold_once(hold));
	assert_int_equal(renewals, 1);
	hold_free(hold);
}

/*---- The sleeper has run meanwhile ----*/

static void sleeper_runs_once(void)
{
	made_up[1].used_ns = reads == 1 ? 5 : 0;
}

static void sleeper_is_awake_once(void)
{
	made_up[1].state = reads == 1 ? THREAD_RUNNING : THREAD_BLOCKED;
}

static void sleeper_calls_once(void)
{
	if (reads == 1)
		made_up[1].call.number = 8;
}

static void sleeper_cannot_be_read_once(void)
{
	made_up[1].state_error = reads == 1 ? -EIO : 0;
}

static void sleeper_cannot_be_measured_once(void)
{
	made_up[1].measure_error = reads == 1 ? -EIO : 0;
}

static void mend_sleeper(void *context)
{
	undo(context);
	made_up[1].state = THREAD_BLOCKED;
	made_up[1].state_error = made_up[1].measure_error = 0;
}

static void data_read_while_a_sleeper_ran_is_discarded(void **state)
{
	static void (*const happens[])(void) = { sleeper_runs_once, sleeper_is_awake_once, sleeper_calls_once,
						 sleeper_cannot_be_read_once,
						 sleeper_cannot_be_measured_once };

	(void)state;
	for (size_t i = 0; i < sizeof(happens) / sizeof(happens[0]); i++) {
		struct hold *hold = begin();

		while_held = happens[i];
		held = hold;
		reads = undos = 0;
		assert_true(hold_while(hold, read_data, mend_sleeper, &reads));
		assert_int_equal(reads, 2);
		assert_int_equal(undos, 1);
		assert_int_equal(made_up[0].stops, 2);
		assert_int_equal(made_up[0].resumes, 2);
		assert_int_equal(hold_count(hold), 2);
		/* A while after the failure. */
		assert_in_range(rested_ns, 500 * 1000, UINT64_MAX);
		hold_free(hold);
	}
}

static void sleeper_runs_for_a_while(void)
{
	made_up[1].used_ns = 5;
	now_ns += 50 * MS;
	for (size_t i = 0; i < THREADS; i++)
		made_up[i].tracee.stopped_ns = now_ns - 50 * MS;
}

/* A thread that runs must not stand still most of the time, for what comes to nothing. */
static void holds_in_vain_have_an_end_and_rests_between_them(void **state)
{
	struct hold *hold = begin();

	(void)state;
	while_held = sleeper_runs_for_a_while;
	assert_false(hold_once(hold));
	assert_in_range(reads, 3, 100);
	assert_int_equal(undos, reads);
	assert_in_range(hold_total_ns(hold), reads * (uint64_t)50 * MS, UINT64_MAX);
	assert_in_range(rested_ns, hold_total_ns(hold), UINT64_MAX);
	hold_free(hold);
}

static unsigned int runs_left;

static void sleeper_runs_so_often(void)
{
	made_up[1].used_ns = runs_left ? 5 : 0;
	runs_left -= runs_left ? 1 : 0;
}

/* A rest of the length of its naps would find each as old as the one before. */
static void a_nap_that_has_just_begun_is_read_at_once(void **state)
{
	static const unsigned int rests_of[] = { 0, 0, 1, 1, 2, 2 };

	(void)state;
	for (unsigned int i = 0; i < sizeof(rests_of) / sizeof(rests_of[0]); i++) {
		struct hold *hold = begin();

		made_up[0].may_stop = made_up[2].may_stop = MAY_NOT_SLEEPS;
		while_held = sleeper_runs_so_often;
		runs_left = i;
		assert_true(hold_once(hold));
		assert_int_equal(reads, i + 1);
		assert_int_equal(undos, i);
		assert_int_equal(rests, rests_of[i] + 1); /* one after the success */
		hold_free(hold);
	}
}

static void without_undo_it_only_reads_again(void **state)
{
	struct hold *hold = begin();

	(void)state;
	while_held = sleeper_runs_once;
	held = hold;
	reads = 0;
	assert_true(hold_while(hold, read_data, NULL, &reads));
	assert_int_equal(reads, 2);
	hold_free(hold);
}

/*---- Threads that wait for a CPU ----*/

/*
 * Thread 0 gets one after 9 ms, and then stands still; thread 2 after 12, as it was told to stop at the same
 * time.
 */
static void threads_without_a_cpu_are_awaited_together(void **state)
{
	struct hold *hold = begin();

	(void)state;
	made_up[0].stops_after_ns = now_ns + 9 * MS;
	made_up[2].stops_after_ns = now_ns + 12 * MS;
	assert_true(hold_once(hold));
	assert_int_equal(reads, 1);
	assert_int_equal(hold_start(hold), HOLD_AT_ONCE);
	assert_int_equal(made_up[0].noted + made_up[2].noted, 2);
	assert_in_range(hold_longest_ns(hold), 3 * MS, 3 * MS + 1000);
	assert_false(made_up[0].tracee.hold_late || made_up[2].tracee.hold_late);
	hold_free(hold);
}

/* However many they are: 20 ms from when the first one stops, not 20 for each. */
static void nobody_stands_still_for_long_because_others_have_no_cpu(void **state)
{
	struct hold *hold = begin();

	(void)state;
	made_up[1].may_stop = MAY_STOP;
	made_up[1].stops_after_ns = now_ns + 15 * MS;
	made_up[2].stops_after_ns = now_ns + 30 * MS;
	made_up[0].tracee.stopped_ns = now_ns;
	hold_go_on_while(hold, goes_on, &go_on_left);
	go_on_left = 1;
	assert_false(hold_once(hold));
	assert_int_equal(reads, 0);
	assert_int_equal(hold_start(hold), HOLD_WAITED);
	assert_in_range(hold_longest_ns(hold), 20 * MS, 21 * MS);
	assert_int_equal(made_up[0].resumes, 1);
	assert_false(made_up[0].stopped || made_up[1].stopped || made_up[2].stopped);
	assert_false(made_up[2].tracee.hold_late);
	hold_free(hold);
}

/* It stopped while another one was awaited in vain: it was held, and goes on, too. */
static void one_that_stops_late_is_held_until_then(void **state)
{
	struct hold *hold = begin();

	(void)state;
	made_up[0].stop_error = made_up[2].stop_error = -ETIMEDOUT;
	stops_meanwhile = &made_up[2];
	hold_go_on_while(hold, goes_on, &go_on_left);
	go_on_left = 1;
	assert_false(hold_once(hold));
	assert_int_equal(made_up[2].stops, 1);
	assert_int_equal(made_up[2].resumes, 1);
	assert_int_equal(made_up[2].noted, 1);
	assert_int_equal(hold_count(hold), 1);
	assert_in_range(hold_longest_ns(hold), MS, 20 * MS);
	hold_free(hold);
}

/*---- There is no such moment ----*/

static void while_a_thread_may_not_be_stopped_there_is_no_hold(void **state)
{
	static const enum may_stop may_not[] = { MAY_NOT_WAITS, MAY_NOT_YET, MAY_NOT_CALLS,
						 MAY_NOT_CALLS_WAITING };
	static const enum hold_start starts[] = { HOLD_WOKE, HOLD_RAN,  HOLD_RAN,    HOLD_RAN,
						  HOLD_WOKE, HOLD_WOKE, HOLD_WAITED, HOLD_RAN };

	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct hold *hold = begin();

		if (i < 4)
			made_up[2].may_stop = may_not[i];
		else if (i == 4)
			made_up[1].state = THREAD_RUNNING;
		else if (i == 5)
			made_up[1].call.known = false;
		else
			made_up[2].stop_error = i == 6 ? -ETIMEDOUT : -ECANCELED;
		assert_false(hold_once(hold));
		assert_int_equal(hold_start(hold), starts[i]);
		assert_int_equal(reads, 0);
		assert_int_equal(undos, 0);
		assert_int_equal(polls, FAILURES_MAX);
		assert_int_equal(rests, FAILURES_MAX);
		/*
		 * As long as it was held, and a millisecond or so each time, but never in step with the
		 * target.
		 */
		assert_in_range(rested_ns - hold_total_ns(hold), FAILURES_MAX * UINT64_C(990000),
				FAILURES_MAX * UINT64_C(1010000));
		assert_int_equal(equal_rests, 0);
		/* None is stopped in vain that can be known to be; what was stopped goes on each time. */
		assert_int_equal(made_up[0].stops, i < 6 ? 0 : FAILURES_MAX);
		assert_int_equal(made_up[0].resumes, made_up[0].stops);
		hold_free(hold);
	}
}

/* There may be thousands behind it, and the next try comes soon. */
static void behind_one_that_may_not_be_stopped_none_is_looked_at(void **state)
{
	struct hold *hold = begin();

	(void)state;
	made_up[0].may_stop = MAY_NOT_YET;
	add_sleepers();
	assert_false(hold_once(hold));
	assert_int_equal(polls, FAILURES_MAX);
	hold_free(hold);
}

/* What is seen later comes after that, and is no random moment. */
static void how_it_began_is_known_of_the_first_try(void **state)
{
	struct hold *hold = begin();

	(void)state;
	assert_true(hold_once(hold));
	assert_int_equal(hold_start(hold), HOLD_AT_ONCE);
	while_held = sleeper_runs_once;
	assert_true(hold_once(hold));
	assert_int_equal(reads, 2);
	assert_int_equal(hold_start(hold), HOLD_WOKE);
	while_held = NULL;
	made_up[1].used_ns = 0;
	assert_true(hold_once(hold));
	assert_int_equal(hold_start(hold), HOLD_AT_ONCE);
	hold_free(hold);
}

/*---- A thread was woken, and waits for a CPU ----*/

static bool has_waiting;

static void waiting_is_seen(void)
{
	has_waiting = hold_has_waiting(held);
}

static void one_that_has_no_cpu_yet_may_be_left_alone(void **state)
{
	struct hold *hold = begin();

	(void)state;
	hold_take_waiting(hold);
	made_up[2].may_stop = MAY_NOT_WAITS;
	made_up[2].thread.runs = 7;
	made_up[2].measured = 1;
	made_up[2].state = THREAD_RUNNING;
	while_held = waiting_is_seen;
	assert_true(hold_once(hold));
	assert_int_equal(reads, 1);
	assert_true(has_waiting);
	assert_int_equal(hold_start(hold), HOLD_AT_ONCE);
	assert_int_equal(made_up[2].stops, 0);
	made_up[2].may_stop = MAY_STOP_WAITING;
	assert_true(hold_once(hold));
	assert_false(has_waiting);
	hold_free(hold);
}

static void waiter_gets_a_cpu_once(void)
{
	made_up[2].thread.runs += reads == 1;
}

static void waiter_runs_once(void)
{
	made_up[2].used_ns = reads == 1 ? 5 : 0;
}

static void waiter_cannot_be_measured_once(void)
{
	made_up[2].measure_error = reads == 1 ? -EIO : 0;
}

static void mend_waiter(void *context)
{
	undo(context);
	made_up[2].measure_error = 0;
	made_up[2].used_ns = 0;
}

static void data_read_while_it_got_a_cpu_is_discarded(void **state)
{
	static void (*const happens[])(void) = { waiter_gets_a_cpu_once, waiter_runs_once,
						 waiter_cannot_be_measured_once };

	(void)state;
	for (size_t i = 0; i < sizeof(happens) / sizeof(happens[0]); i++) {
		struct hold *hold = begin();

		hold_take_waiting(hold);
		made_up[2].may_stop = MAY_NOT_WAITS;
		made_up[2].measured = 1;
		while_held = happens[i];
		held = hold;
		reads = undos = 0;
		assert_true(hold_while(hold, read_data, mend_waiter, &reads));
		assert_int_equal(reads, 2);
		assert_int_equal(undos, 1);
		assert_int_equal(hold_start(hold), HOLD_WOKE);
		hold_free(hold);
	}
}

static void threads_that_have_ended_need_no_stop(void **state)
{
	struct hold *hold = begin();

	(void)state;
	made_up[0].stop_error = -ESRCH;
	made_up[1].state_error = -ESRCH;
	assert_true(hold_once(hold));
	assert_int_equal(reads, 1);
	assert_int_equal(made_up[0].resumes, 0);
	hold_free(hold);
	hold = begin();
	made_up[1].measure_error = -ESRCH;
	assert_true(hold_once(hold));
	hold_free(hold);
}

static void it_gives_up_when_it_may_not_go_on(void **state)
{
	struct hold *hold = begin();

	(void)state;
	made_up[0].may_stop = MAY_NOT_CALLS;
	hold_go_on_while(hold, goes_on, &go_on_left);
	go_on_left = 5;
	assert_false(hold_once(hold));
	assert_int_equal(polls, 5);
	made_up[0].may_stop = MAY_STOP;
	go_on_left = 0;
	assert_false(hold_once(hold));
	assert_int_equal(reads, 0);
	go_on_left = 1;
	assert_true(hold_once(hold));
	hold_free(hold);
}

static void where_memory_is_short_nothing_is_held(void **state)
{
	struct hold *hold;

	(void)state;
	allocation_fails_after(0);
	assert_null(hold_new(NULL, NULL));
	assert_true(allocation_failed());
	hold = begin();
	hold_go_on_while(hold, goes_on, &go_on_left);
	go_on_left = 1;
	allocation_fails_after(0);
	assert_false(hold_once(hold));
	assert_true(allocation_failed());
	assert_int_equal(reads, 0);
	assert_int_equal(made_up[0].stops, 0);
	go_on_left = 1;
	assert_true(hold_once(hold));
	hold_free(hold);
}

static void more_threads_need_more_room(void **state)
{
	struct hold *hold = begin();

	(void)state;
	thread_total = 1;
	assert_true(hold_once(hold));
	thread_total = THREADS;
	assert_true(hold_once(hold));
	assert_int_equal(made_up[2].stops, 1);
	thread_total = 0;
	assert_true(hold_once(hold));
	assert_false(has_stopped);
	hold_free(hold);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_that_run_are_stopped_and_those_that_sleep_are_not),
		cmocka_unit_test(who_is_on_a_stack_is_known),
		cmocka_unit_test(how_long_it_was_held_is_known),
		cmocka_unit_test(none_stands_still_while_those_that_sleep_are_looked_at),
		cmocka_unit_test(signals_are_passed_on_while_many_are_looked_at),
		cmocka_unit_test(a_process_that_sleeps_is_held_without_a_stop),
		cmocka_unit_test(a_turn_that_is_used_up_is_renewed_first),
		cmocka_unit_test(data_read_while_a_sleeper_ran_is_discarded),
		cmocka_unit_test(holds_in_vain_have_an_end_and_rests_between_them),
		cmocka_unit_test(a_nap_that_has_just_begun_is_read_at_once),
		cmocka_unit_test(without_undo_it_only_reads_again),
		cmocka_unit_test(threads_without_a_cpu_are_awaited_together),
		cmocka_unit_test(nobody_stands_still_for_long_because_others_have_no_cpu),
		cmocka_unit_test(one_that_stops_late_is_held_until_then),
		cmocka_unit_test(while_a_thread_may_not_be_stopped_there_is_no_hold),
		cmocka_unit_test(behind_one_that_may_not_be_stopped_none_is_looked_at),
		cmocka_unit_test(how_it_began_is_known_of_the_first_try),
		cmocka_unit_test(one_that_has_no_cpu_yet_may_be_left_alone),
		cmocka_unit_test(data_read_while_it_got_a_cpu_is_discarded),
		cmocka_unit_test(threads_that_have_ended_need_no_stop),
		cmocka_unit_test(it_gives_up_when_it_may_not_go_on),
		cmocka_unit_test(where_memory_is_short_nothing_is_held),
		cmocka_unit_test(more_threads_need_more_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
