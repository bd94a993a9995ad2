/* SPDX-License-Identifier: MIT */
/* Threads that no signal wakes, such as one whose child has its memory until it ends. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory/errand.h"
#include "src/apart/blocked.h"
#include "tests/unit/target_process.h"

enum { STACK_SIZE = 1 << 16 };

static const uint64_t second = 1000000000;
static pid_t read_pid;

static _Alignas(16) char stack[STACK_SIZE];
static const char *name;
static _Atomic pid_t child, parent;
static pthread_t waiting;

static int sleep_on(void *unused)
{
	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child = getpid();
	while (pause())
		;
	return 0;
}

static void *wait_for_child(void *unused)
{
	(void)unused;
	if (name)
		prctl(PR_SET_NAME, name);
	parent = gettid();
	waitpid(clone(sleep_on, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL), NULL, 0);
	return NULL;
}

static void begin_waiting(const char *as)
{
	name = as;
	child = 0;
	assert_int_equal(pthread_create(&waiting, NULL, wait_for_child, NULL), 0);
	while (!child)
		sched_yield();
	/* The child may tell so before its parent waits. */
	target_process_await(getpid(), parent, "D");
}

static void end_waiting(void)
{
	kill(child, SIGKILL);
	child = 0;
	assert_int_equal(pthread_join(waiting, NULL), 0);
}

/* Also after a test that failed. */
static int leave_none(void **state)
{
	(void)state;
	if (child)
		end_waiting();
	return 0;
}

/* What does a look say, after one each half second since the last one? */
static bool looks(struct blocked *blocked, uint64_t at_ns)
{
	read_pid = -1;
	for (uint64_t now = blocked->looked_ns + second / 2; blocked->looked_ns && now < at_ns;
	     now += second / 2)
		blocked_for_long(blocked, false, now, &read_pid);
	return blocked_for_long(blocked, false, at_ns, &read_pid);
}

static void a_thread_that_waits_for_seconds_is_blocked(void **state)
{
	struct blocked blocked = { 0 };

	(void)state;
	begin_waiting(NULL);
	assert_false(looks(&blocked, 100 * second));
	assert_int_equal(blocked.count, 1);
	assert_false(looks(&blocked, 101 * second));
	assert_true(looks(&blocked, 102 * second));
	assert_int_equal(read_pid, 0); /* it does not read memory */
	/* It does not look all the time. */
	assert_false(looks(&blocked, 102 * second + 1));
	assert_true(looks(&blocked, 103 * second));
	end_waiting();
	assert_false(looks(&blocked, 104 * second));
	assert_int_equal(blocked.count, 0);
}

static void one_that_ran_in_between_is_not(void **state)
{
	struct blocked blocked = { 0 };

	(void)state;
	begin_waiting(NULL);
	assert_false(looks(&blocked, 100 * second));
	blocked.threads[0].switches--;
	assert_false(looks(&blocked, 102 * second));
	assert_true(looks(&blocked, 103 * second));
	end_waiting();
}

/* As on a machine that was paused. */
static void what_lies_between_two_looks_is_not_known(void **state)
{
	struct blocked blocked = { 0 };

	(void)state;
	begin_waiting(NULL);
	assert_false(blocked_for_long(&blocked, false, 100 * second, &read_pid));
	assert_false(blocked_for_long(&blocked, false, 110 * second, &read_pid));
	assert_false(looks(&blocked, 111 * second));
	assert_true(looks(&blocked, 112 * second));
	end_waiting();
}

/* Where nothing goes on, it looks once a second, until a thread waits. */
static void at_rest_it_looks_rarely(void **state)
{
	struct blocked blocked = { 0 };

	(void)state;
	assert_false(blocked_for_long(&blocked, true, 100 * second, &read_pid));
	begin_waiting(NULL);
	assert_false(blocked_for_long(&blocked, true, 101 * second - 1, &read_pid));
	assert_int_equal(blocked.count, 0);
	assert_false(blocked_for_long(&blocked, true, 101 * second, &read_pid));
	assert_int_equal(blocked.count, 1);
	for (uint64_t quarter = 1; quarter < 8; quarter++)
		assert_false(
			blocked_for_long(&blocked, true, 101 * second + quarter * second / 4, &read_pid));
	assert_true(blocked_for_long(&blocked, true, 103 * second, &read_pid));
	end_waiting();
}

static void errands_may_wait_so(void **state)
{
	struct blocked blocked = { 0 };

	(void)state;
	begin_waiting(ERRAND_THREAD_NAME);
	assert_false(looks(&blocked, 100 * second));
	assert_false(looks(&blocked, 103 * second));
	assert_int_equal(blocked.count, 0);
	end_waiting();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_thread_that_waits_for_seconds_is_blocked, leave_none),
		cmocka_unit_test_teardown(one_that_ran_in_between_is_not, leave_none),
		cmocka_unit_test_teardown(what_lies_between_two_looks_is_not_known, leave_none),
		cmocka_unit_test_teardown(at_rest_it_looks_rarely, leave_none),
		cmocka_unit_test_teardown(errands_may_wait_so, leave_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
