/* SPDX-License-Identifier: MIT */
/* How far the clock of a process with a time namespace of its own is ahead. */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/time_namespace.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

enum { REFUSED = 'n', MADE = 'y' };

static int told[2], kept[2]; /* what is told of the processes; they stay until kept is closed */

/*
 * A process with a namespace for its children, and a child in it. What it tells: REFUSED or MADE, and the
 * child.
 */
static void run_parent(const char *offset)
{
	char answer = REFUSED, end;
	int file;
	pid_t child = 0;

	close(kept[1]);
	if (unshare(CLONE_NEWUSER | CLONE_NEWTIME) == 0) {
		file = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
		if (write(file, offset, strlen(offset)) == (ssize_t)strlen(offset)) {
			answer = MADE;
			child = fork();
		}
	}
	if (child || answer == REFUSED) {
		(void)!write(told[1], &answer, 1);
		(void)!write(told[1], &child, sizeof(child));
	}
	(void)!read(kept[0], &end, 1);
	_exit(0);
}

static void check(const char *offset, int64_t ahead_ns)
{
	pid_t parent, child;
	int64_t ns = 1;
	char answer;

	assert_return_code(pipe2(told, O_CLOEXEC), 0);
	assert_return_code(pipe2(kept, O_CLOEXEC), 0);
	parent = fork();
	if (parent == 0)
		run_parent(offset);
	close(kept[0]);
	assert_int_equal(read(told[0], &answer, 1), 1);
	assert_int_equal(read(told[0], &child, sizeof(child)), sizeof(child));
	if (answer == MADE) {
		/* The parent itself has the clock of ljspy. */
		assert_true(time_namespace_offset(parent, &ns));
		assert_int_equal(ns, 0);
		assert_true(time_namespace_offset(child, &ns));
		assert_int_equal(ns, ahead_ns);
	}
	close(kept[1]);
	close(told[0]);
	close(told[1]);
	waitpid(parent, NULL, 0);
	if (answer == REFUSED)
		skip();
}

static void a_clock_may_be_ahead_or_behind(void **state)
{
	(void)state;
	check("monotonic 5000 7\n", INT64_C(5000) * NS_PER_SECOND + 7);
	check("monotonic -1 999999999\nboottime 300 0\n", -1);
}

static void most_have_the_clock_of_ljspy(void **state)
{
	int64_t ns = 1;

	(void)state;
	assert_true(time_namespace_offset(getpid(), &ns));
	assert_int_equal(ns, 0);
}

static void one_that_has_ended_has_none(void **state)
{
	int64_t ns;
	pid_t ended;

	(void)state;
	/* A kernel without such namespaces has one clock for all, there or not. */
	if (access("/proc/self/ns/time", F_OK) != 0)
		skip();
	ended = fork();
	if (ended == 0)
		_exit(0);
	waitpid(ended, NULL, 0);
	assert_false(time_namespace_offset(ended, &ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_may_be_ahead_or_behind),
		cmocka_unit_test(most_have_the_clock_of_ljspy),
		cmocka_unit_test(one_that_has_ended_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
