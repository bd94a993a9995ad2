/* SPDX-License-Identifier: MIT */
/*
 * For how long threads are left alone, and how often they must be seen asleep. Time and threads are made up.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "src/linux/calls/call_nature.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/threads/may_stop.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(clock_gettime);
INSTEAD_OF(thread_read_state);
INSTEAD_OF(thread_measure);
INSTEAD_OF(on_cpu_look);
INSTEAD_OF(call_bears_stop);
INSTEAD_OF(call_may_be_cut);
INSTEAD_OF(call_was_at_risk);

/* What the thread does, and what is made of it. */
enum { TID = 4242, HARMLESS_CALL = 7, FRAGILE_CALL = 8, LOOKS_AT_FIRST = 8, HARMLESS_ENOUGH = 16 };

static uint64_t now_ns;
static struct {
	enum thread_state state;
	struct thread_call call;
	int state_error, measure_error;
	enum presence presence;
	int64_t stopped_call; /* the one that a stop has interrupted */
	bool may_be_cut, was_at_risk;
	unsigned int reads, looks, asked, cut, risk; /* how often each was asked */
} made_up;

static struct thread thread;
static struct own_turn turn;
static struct threads *const threads = (struct threads *)&made_up;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	*ret_time = (struct timespec){ .tv_sec = (time_t)(now_ns / NS_PER_SECOND),
				       .tv_nsec = (long)(now_ns % NS_PER_SECOND) };
	return 0;
}

int __wrap_thread_read_state(struct threads *of_threads, struct thread *of, enum thread_state *ret_state,
			     struct thread_call *ret_call)
{
	assert_ptr_equal(of_threads, threads);
	assert_ptr_equal(of, &thread);
	made_up.reads++;
	if (made_up.state_error)
		return made_up.state_error;
	*ret_state = made_up.state;
	*ret_call = made_up.call;
	return 0;
}

int __wrap_thread_measure(struct threads *of_threads, struct thread *of, uint64_t *ret_used_ns)
{
	assert_ptr_equal(of_threads, threads);
	assert_ptr_equal(of, &thread);
	*ret_used_ns = 0;
	return made_up.measure_error;
}

enum presence __wrap_on_cpu_look(struct threads *of_threads, struct thread *of, struct own_turn *of_turn)
{
	assert_ptr_equal(of_threads, threads);
	assert_ptr_equal(of, &thread);
	assert_ptr_equal(of_turn, &turn);
	made_up.looks++;
	return made_up.presence;
}

bool __wrap_call_bears_stop(pid_t pid, int64_t number, const uint64_t arguments[static 6])
{
	assert_int_equal(pid, TID);
	assert_int_equal(arguments[0], made_up.call.arguments[0]);
	made_up.asked++;
	return number != FRAGILE_CALL;
}

/* Of the registers that stop() makes up. */
static void assert_stopped_call(int64_t number, const uint64_t arguments[static 6], int64_t result)
{
	assert_int_equal(number, made_up.stopped_call);
	assert_int_equal(arguments[1], 11);
	assert_int_equal(result, 10);
}

bool __wrap_call_may_be_cut(int64_t number, const uint64_t arguments[static 6], int64_t result)
{
	assert_stopped_call(number, arguments, result);
	made_up.cut++;
	return made_up.may_be_cut;
}

bool __wrap_call_was_at_risk(pid_t pid, int64_t number, const uint64_t arguments[static 6], int64_t result)
{
	assert_int_equal(pid, TID);
	assert_stopped_call(number, arguments, result);
	made_up.risk++;
	return made_up.was_at_risk;
}

static int begin(void **state)
{
	(void)state;
	now_ns = UINT64_C(1000) * NS_PER_SECOND;
	memset(&made_up, 0, sizeof(made_up));
	made_up.state = THREAD_BLOCKED;
	made_up.presence = PRESENCE_ON_CPU;
	made_up.stopped_call = 9;
	thread = (struct thread){ .tid = TID, .runs = 1 };
	return 0;
}

static void pass(uint64_t seconds)
{
	now_ns += seconds * NS_PER_SECOND;
}

/* It sleeps in this call, and a look sees that; sp tells one call from the next. */
static void sleep_in(int64_t number, uint64_t sp)
{
	made_up.call = (struct thread_call){ .known = true, .number = number, .arguments = { 3 }, .sp = sp };
	thread.runs++;
	thread.sleeps++;
	thread_watch_sleep(threads, &thread);
}

/* It runs on after its sleep. */
static enum may_stop run(void)
{
	thread.runs++;
	thread_note_place(&thread);
	return thread_may_stop_now(&thread, PRESENCE_ON_CPU);
}

/* Until it was seen asleep often enough, nothing else counts. */
static void become_known(void)
{
	for (uint64_t i = 0; i < LOOKS_AT_FIRST; i++) {
		sleep_in(HARMLESS_CALL, i + 1);
		run();
	}
	assert_int_equal(run(), MAY_STOP);
}

static struct registers stopped_registers(void)
{
	return (struct registers){ .call_number = (uint64_t)made_up.stopped_call, .rax = 10, .rsi = 11 };
}

static void stop(void)
{
	const struct registers registers = stopped_registers();

	thread_note_stop(&thread, &registers);
	thread.sleeps++;
}

static void resume(void)
{
	const struct registers registers = stopped_registers();

	thread_note_resumed(&thread, &registers);
}

/*---- For how long ----*/

/* To the nanosecond, so many seconds from now on. */
static void assert_left_alone_for(uint64_t seconds)
{
	const uint64_t begin_ns = now_ns;

	now_ns = begin_ns + seconds * NS_PER_SECOND - 1;
	assert_int_equal(run(), MAY_NOT_CALLS);
	now_ns++;
	assert_int_equal(run(), MAY_STOP);
	now_ns = begin_ns;
}

/* Its call ends now. */
static void wake(void)
{
	assert_int_equal(run(), MAY_NOT_CALLS);
}

static void a_call_that_does_not_bear_a_stop_counts_for_seconds(void **state)
{
	(void)state;
	become_known();
	sleep_in(FRAGILE_CALL, 100);
	pass(1000);
	wake();
	assert_left_alone_for(10);
}

static void it_counts_for_a_multiple_of_the_time_between_two(void **state)
{
	(void)state;
	become_known();
	sleep_in(FRAGILE_CALL, 100);
	wake();
	pass(2);
	sleep_in(FRAGILE_CALL, 101);
	wake();
	assert_left_alone_for(10);
	pass(30);
	assert_int_equal(run(), MAY_STOP);
	sleep_in(FRAGILE_CALL, 102);
	wake();
	assert_left_alone_for(120);
	/* The longest time that there was. */
	pass(5);
	sleep_in(FRAGILE_CALL, 103);
	wake();
	assert_left_alone_for(120);
}

static void it_counts_for_minutes_at_most(void **state)
{
	(void)state;
	become_known();
	sleep_in(FRAGILE_CALL, 100);
	wake();
	pass(5000);
	sleep_in(FRAGILE_CALL, 101);
	wake();
	assert_left_alone_for(600);
}

/* Also if it is read more than once, or not at all as it has not run since. */
static void one_long_call_is_one(void **state)
{
	const uint64_t runs = 50;

	(void)state;
	become_known();
	thread.runs = runs;
	sleep_in(FRAGILE_CALL, 100);
	for (int i = 0; i < 3; i++) {
		pass(100);
		made_up.reads = 0;
		thread_watch_sleep(threads, &thread);
		assert_int_equal(made_up.reads, 0);
	}
	wake();
	assert_left_alone_for(10);
	assert_int_equal(made_up.asked, LOOKS_AT_FIRST + 1);
}

static void a_harmless_call_is_forgotten_at_once(void **state)
{
	(void)state;
	become_known();
	sleep_in(HARMLESS_CALL, 100);
	pass(1);
	assert_int_equal(run(), MAY_STOP);
	/* So is a sleep outside of a call, of which nobody has to be asked. */
	made_up.asked = 0;
	sleep_in(-1, 100);
	assert_int_equal(run(), MAY_STOP);
	assert_int_equal(made_up.asked, 0);
	/* The first call of all is one. */
	sleep_in(0, 100);
	assert_int_equal(made_up.asked, 1);
}

static void the_same_call_is_judged_once(void **state)
{
	(void)state;
	become_known();
	made_up.asked = 0;
	sleep_in(HARMLESS_CALL, 100);
	run();
	sleep_in(HARMLESS_CALL, 100);
	assert_int_equal(made_up.asked, 1);
	sleep_in(HARMLESS_CALL, 101);
	assert_int_equal(made_up.asked, 2);
	/* An unknown one is none, and does not end the one before. */
	made_up.call.known = false;
	thread.runs++;
	thread_watch_sleep(threads, &thread);
	assert_int_equal(made_up.asked, 2);
	assert_int_equal(thread.calls.seen.sp, 101);
}

/*---- How often it must be seen ----*/

static void one_that_sleeps_is_known_when_it_was_seen_asleep_four_times(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 4; i++) {
		sleep_in(HARMLESS_CALL, i);
		assert_int_equal(run(), i < 4 ? MAY_NOT_YET : MAY_STOP);
	}
	thread.sleeps++;
	assert_int_equal(run(), MAY_STOP);
}

static void one_that_is_never_seen_asleep_is_left_alone_eight_times(void **state)
{
	(void)state;
	for (int i = 1; i <= 8; i++) {
		thread.sleeps++;
		assert_int_equal(run(), MAY_NOT_YET);
		/* It has not slept since the last question. */
		assert_int_equal(run(), MAY_STOP);
	}
	thread.sleeps++;
	assert_int_equal(run(), MAY_STOP);
}

/* An unknown call counts, too: more will not be known. */
static void a_sleep_counts_whatever_is_known_of_it(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		thread.runs++;
		thread.sleeps++;
		thread_watch_sleep(threads, &thread);
	}
	assert_int_equal(run(), MAY_STOP);
}

static void what_is_no_sleep_does_not_count(void **state)
{
	static const enum thread_state states[] = { THREAD_RUNNING, THREAD_UNINTERRUPTIBLE, THREAD_BLOCKED,
						    THREAD_BLOCKED };

	(void)state;
	for (int i = 0; i < 4; i++) {
		made_up.state = states[i];
		thread.is_job_stopped = i == 2;
		made_up.state_error = i == 3 ? -ESRCH : 0;
		sleep_in(HARMLESS_CALL, (uint64_t)i);
		assert_int_equal(thread.calls.seen_count, 0);
		assert_false(thread.calls.seen.known);
	}
}

/* Of one that still waits for a CPU, the files are not read again. */
static void one_that_waits_is_read_once(void **state)
{
	(void)state;
	made_up.state = THREAD_RUNNING;
	thread.runs = thread.runs_left = 5;
	thread_watch_sleep(threads, &thread);
	assert_int_equal(made_up.reads, 1);
	thread_watch_sleep(threads, &thread);
	assert_int_equal(made_up.reads, 1);
	/* It has got one since. */
	thread.runs = 6;
	thread_watch_sleep(threads, &thread);
	assert_int_equal(made_up.reads, 2);
	thread_watch_sleep(threads, &thread);
	assert_int_equal(made_up.reads, 3);
	/* Nothing is known of one whose kernel does not count. */
	thread.runs = thread.runs_left = 0;
	thread_watch_sleep(threads, &thread);
	thread_watch_sleep(threads, &thread);
	assert_int_equal(made_up.reads, 5);
}

/*---- Where it is ----*/

static void a_place_is_asked_for_of_those_that_are_awake(void **state)
{
	(void)state;
	assert_int_equal(thread_may_stop(threads, &thread, &turn), MAY_NOT_SLEEPS);
	made_up.state = THREAD_UNINTERRUPTIBLE;
	assert_int_equal(thread_may_stop(threads, &thread, &turn), MAY_NOT_SLEEPS);
	made_up.state = THREAD_RUNNING;
	made_up.measure_error = -ESRCH;
	assert_int_equal(thread_may_stop(threads, &thread, &turn), MAY_NOT_SLEEPS);
	made_up.measure_error = 0;
	made_up.state_error = -ESRCH;
	assert_int_equal(thread_may_stop(threads, &thread, &turn), MAY_NOT_SLEEPS);
	assert_int_equal(made_up.looks, 0);
	made_up.state_error = 0;
	assert_int_equal(thread_may_stop(threads, &thread, &turn), MAY_STOP);
	assert_int_equal(made_up.looks, 1);
	made_up.presence = PRESENCE_OFF_CPU;
	assert_int_equal(thread_may_stop(threads, &thread, &turn), MAY_STOP_WAITING);
	/* It went to sleep, and was woken. */
	thread.sleeps++;
	assert_int_equal(thread_may_stop(threads, &thread, &turn), MAY_NOT_WAITS);
	made_up.presence = PRESENCE_PUT_OFF;
	assert_int_equal(thread_may_stop(threads, &thread, &turn), MAY_STOP);
}

/* Even where the kernel does not count runs, it has no CPU. */
static void one_that_waits_must_have_run_since_its_sleep(void **state)
{
	(void)state;
	thread.runs = 0;
	thread_note_place(&thread);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_NOT_WAITS);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_AWAKE), MAY_STOP);
	thread.runs = 1;
	thread_note_place(&thread);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_STOP_WAITING);
	/* Nothing has changed: it still has. */
	thread_note_place(&thread);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_STOP_WAITING);
}

/*
 * It may have been woken in the call that it was seen asleep in, before the kernel's count tells of the
 * sleep.
 */
static void one_that_was_seen_asleep_has_not_run_since(void **state)
{
	(void)state;
	thread.runs = 2;
	thread_note_place(&thread);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_STOP_WAITING);
	made_up.call = (struct thread_call){ .known = true, .number = HARMLESS_CALL };
	thread_watch_sleep(threads, &thread);
	thread_note_place(&thread);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_NOT_WAITS);
}

/*---- Stops ----*/

/* Stopped outside of a call, it stays awake; a call may sleep after the stop. */
static void a_stop_in_a_call_is_as_a_sleep(void **state)
{
	(void)state;
	for (made_up.stopped_call = -1; made_up.stopped_call <= 1; made_up.stopped_call++) {
		run();
		stop();
		thread_note_place(&thread);
		assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU),
				 made_up.stopped_call < 0 ? MAY_STOP_WAITING : MAY_NOT_WAITS);
	}
}

static void a_stop_at_risk_is_the_last_for_a_while(void **state)
{
	(void)state;
	run();
	stop();
	assert_int_equal(made_up.cut, 1);
	assert_int_equal(made_up.risk, 0);
	assert_int_equal(run(), MAY_STOP);
	made_up.may_be_cut = true;
	stop();
	assert_int_equal(made_up.risk, 1);
	assert_int_equal(run(), MAY_STOP);
	made_up.was_at_risk = true;
	stop();
	assert_left_alone_for(10);
}

static void after_sixteen_harmless_stops_calls_are_judged_afterwards(void **state)
{
	(void)state;
	run();
	made_up.may_be_cut = true;
	for (int i = 0; i < HARMLESS_ENOUGH; i++) {
		stop();
		assert_int_equal(made_up.risk, i + 1);
		if (i < HARMLESS_ENOUGH - 1)
			resume();
		assert_int_equal(made_up.risk, i + 1);
	}
	resume();
	assert_int_equal(made_up.risk, HARMLESS_ENOUGH + 1);
	stop();
	assert_int_equal(made_up.risk, HARMLESS_ENOUGH + 1);
	/* One seems to be at risk: the next ones are judged before, and all of them again. */
	made_up.was_at_risk = true;
	resume();
	assert_int_equal(made_up.risk, HARMLESS_ENOUGH + 2);
	made_up.was_at_risk = false;
	for (int i = 0; i < HARMLESS_ENOUGH; i++) {
		stop();
		assert_int_equal(made_up.risk, HARMLESS_ENOUGH + 3 + i);
	}
	stop();
	assert_int_equal(made_up.risk, HARMLESS_ENOUGH + 2 + HARMLESS_ENOUGH);
}

static void one_at_risk_ends_a_row_of_harmless_ones(void **state)
{
	(void)state;
	made_up.may_be_cut = true;
	for (int i = 0; i < 2 * HARMLESS_ENOUGH; i++) {
		made_up.was_at_risk = i == HARMLESS_ENOUGH - 1;
		stop();
	}
	/* The last one was the sixteenth since. */
	assert_int_equal(made_up.risk, 2 * HARMLESS_ENOUGH);
	stop();
	assert_int_equal(made_up.risk, 2 * HARMLESS_ENOUGH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_call_that_does_not_bear_a_stop_counts_for_seconds, begin),
		cmocka_unit_test_setup(it_counts_for_a_multiple_of_the_time_between_two, begin),
		cmocka_unit_test_setup(it_counts_for_minutes_at_most, begin),
		cmocka_unit_test_setup(one_long_call_is_one, begin),
		cmocka_unit_test_setup(a_harmless_call_is_forgotten_at_once, begin),
		cmocka_unit_test_setup(the_same_call_is_judged_once, begin),
		cmocka_unit_test_setup(one_that_sleeps_is_known_when_it_was_seen_asleep_four_times, begin),
		cmocka_unit_test_setup(one_that_is_never_seen_asleep_is_left_alone_eight_times, begin),
		cmocka_unit_test_setup(a_sleep_counts_whatever_is_known_of_it, begin),
		cmocka_unit_test_setup(what_is_no_sleep_does_not_count, begin),
		cmocka_unit_test_setup(one_that_waits_is_read_once, begin),
		cmocka_unit_test_setup(a_place_is_asked_for_of_those_that_are_awake, begin),
		cmocka_unit_test_setup(one_that_waits_must_have_run_since_its_sleep, begin),
		cmocka_unit_test_setup(one_that_was_seen_asleep_has_not_run_since, begin),
		cmocka_unit_test_setup(a_stop_in_a_call_is_as_a_sleep, begin),
		cmocka_unit_test_setup(a_stop_at_risk_is_the_last_for_a_while, begin),
		cmocka_unit_test_setup(after_sixteen_harmless_stops_calls_are_judged_afterwards, begin),
		cmocka_unit_test_setup(one_at_risk_ends_a_row_of_harmless_ones, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
