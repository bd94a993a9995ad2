/* SPDX-License-Identifier: MIT */
/* Whether a thread may be stopped, by where it was seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/syscall.h>
#include <unistd.h>

#include "src/linux/threads/may_stop.h"

#include "src/linux/clocks/clock.h"
enum { LOOKS = 20 };

/* As a look finds it: so often it has been given a CPU and gone to sleep. */
static void look(struct thread *thread, uint64_t runs, uint64_t sleeps)
{
	thread->runs = runs;
	thread->sleeps = sleeps;
	thread_note_place(thread);
}

/* Stopped after a call, or outside of one if that is -1. */
static void stop(struct thread *thread, int64_t number, uint64_t asked, uint64_t result)
{
	const struct registers registers = { .call_number = (uint64_t)number, .rsi = asked, .rax = result };

	thread_note_stop(thread, &registers);
}

static void one_that_never_sleeps_may_be_stopped_anywhere(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 1, 0);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_ON_CPU), MAY_STOP);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_PUT_OFF), MAY_STOP);
	look(&thread, 2, 0);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_STOP_WAITING);
}

static void one_that_waits_may_have_been_woken_in_its_call(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 2, 1);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_NOT_WAITS);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_AWAKE), MAY_NOT_WAITS);
	look(&thread, 3, 1);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_AWAKE), MAY_STOP_WAITING);
	look(&thread, 4, 2);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_NOT_WAITS);
}

static void a_stop_is_a_sleep_that_matters_only_in_a_call(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 2, 0);
	stop(&thread, -1, 0, 0);
	look(&thread, 2, 1);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_STOP_WAITING);
	stop(&thread, SYS_getpid, 0, 1);
	look(&thread, 2, 2);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_NOT_WAITS);
}

static void one_that_sleeps_unseen_is_left_alone_for_a_while(void **state)
{
	struct thread thread = { .tid = getpid() };
	int left_alone = 0;

	(void)state;
	for (uint64_t i = 1; i <= LOOKS; i++) {
		look(&thread, i + 1, i);
		left_alone += thread_may_stop_now(&thread, PRESENCE_ON_CPU) == MAY_NOT_WAITS;
	}
	assert_in_range(left_alone, 1, LOOKS / 2);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_ON_CPU), MAY_STOP);
}

static void calls_that_a_stop_would_cut_are_left_alone(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 1, 0);
	stop(&thread, SYS_getrandom, 100000, 256);
	look(&thread, 2, 1);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_ON_CPU), MAY_NOT_CALLS);
	look(&thread, 3, 1);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_NOT_WAITS);
}

/* Everything that was seen of the thread is so much longer ago. */
static void pass_time(struct thread *thread, uint64_t seconds)
{
	thread->calls.fragile_seen_ns -= seconds * NS_PER_SECOND;
}

static bool is_left_alone(struct thread *thread, uint64_t runs)
{
	look(thread, runs, thread->calls.sleeps);
	return thread_may_stop_now(thread, PRESENCE_ON_CPU) == MAY_NOT_CALLS;
}

static void a_call_is_forgotten_in_seconds(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 1, 0);
	stop(&thread, SYS_getrandom, 100000, 256);
	pass_time(&thread, 5);
	assert_true(is_left_alone(&thread, 2));
	pass_time(&thread, 10);
	assert_false(is_left_alone(&thread, 3));
}

static void calls_that_come_back_are_kept_in_mind(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 1, 0);
	stop(&thread, SYS_getrandom, 100000, 256);
	pass_time(&thread, 30);
	assert_false(is_left_alone(&thread, 2));
	stop(&thread, SYS_getrandom, 100000, 256);
	pass_time(&thread, 60);
	assert_true(is_left_alone(&thread, 3));
	pass_time(&thread, 100);
	assert_false(is_left_alone(&thread, 4));
}

/* A target that sleeps is not looked at. */
static void a_call_counts_from_its_end(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 1, 0);
	stop(&thread, SYS_getrandom, 100000, 256);
	thread.calls.sleep_runs = 1;
	pass_time(&thread, 300);
	assert_true(is_left_alone(&thread, 2));
	pass_time(&thread, 15);
	assert_false(is_left_alone(&thread, 3));
}

static void where_the_kernel_does_not_count_it_may_be_stopped(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 0, 0);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_AWAKE), MAY_STOP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_never_sleeps_may_be_stopped_anywhere),
		cmocka_unit_test(one_that_waits_may_have_been_woken_in_its_call),
		cmocka_unit_test(a_stop_is_a_sleep_that_matters_only_in_a_call),
		cmocka_unit_test(one_that_sleeps_unseen_is_left_alone_for_a_while),
		cmocka_unit_test(calls_that_a_stop_would_cut_are_left_alone),
		cmocka_unit_test(a_call_is_forgotten_in_seconds),
		cmocka_unit_test(calls_that_come_back_are_kept_in_mind),
		cmocka_unit_test(a_call_counts_from_its_end),
		cmocka_unit_test(where_the_kernel_does_not_count_it_may_be_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
