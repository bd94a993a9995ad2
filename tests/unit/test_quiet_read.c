/* SPDX-License-Identifier: MIT */
/* How often a process that does not stay asleep is read. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/proc_text.h"
#include "src/nginx/quiet_read.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/target_process.h"

enum { TRIES = 20, MS = 1000 * 1000, SLOW_MS = 200 };

struct reading {
	unsigned count;
	long takes_ms;
};

static int read_slowly(void *context)
{
	struct reading *reading = context;
	const struct timespec pause = { .tv_nsec = reading->takes_ms * MS };

	reading->count++;
	nanosleep(&pause, NULL);
	return 0;
}

static bool always_runs;

INSTEAD_OF(proc_text_read);
ssize_t __wrap_proc_text_read(pid_t pid, const char *name, char *text, size_t room)
{
	if (!always_runs)
		return __real_proc_text_read(pid, name, text, room);
	return snprintf(text, room, "%s", strcmp(name, "stat") == 0 ? "1 (busy) R 1 1" : "1 1 1");
}

/* A process that runs this again and again. It is killed when the test ends. */
static pid_t start(void (*rest)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			rest();
	}
	assert_true(pid > 0);
	return pid;
}

static void rest_a_moment(void)
{
	const struct timespec moment = { .tv_nsec = MS };

	nanosleep(&moment, NULL);
}

static void rest_for_ever(void)
{
	pause();
}

/* It is read in the end, as it is. */
static void a_process_that_never_sleeps_is_read_once(void **state)
{
	struct reading reading = { .takes_ms = 1 };
	bool asleep = true;

	(void)state;
	always_runs = true;
	assert_int_equal(quiet_read(getpid(), read_slowly, &reading, &asleep), 0);
	always_runs = false;
	assert_false(asleep);
	assert_int_equal(reading.count, 1);
}

static int read_in_vain(void *context)
{
	++*(unsigned int *)context;
	return -ENOMEM;
}

static void an_error_ends_it(void **state)
{
	pid_t pid = start(rest_for_ever);
	unsigned int count = 0;
	bool asleep;

	(void)state;
	target_process_await(pid, pid, "S");
	assert_int_equal(quiet_read(pid, read_in_vain, &count, &asleep), -ENOMEM);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(count, 1);
}

static void readings_that_take_long_are_few(void **state)
{
	struct reading reading = { .takes_ms = SLOW_MS };
	pid_t pid = start(rest_a_moment);
	bool asleep = true;

	(void)state;
	assert_int_equal(quiet_read(pid, read_slowly, &reading, &asleep), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_false(asleep);
	assert_in_range(reading.count, 1, TRIES / 2);
}

static void a_process_that_sleeps_is_read_once(void **state)
{
	struct reading reading = { .takes_ms = 1 };
	pid_t pid = start(rest_for_ever);
	bool asleep = false;

	(void)state;
	target_process_await(pid, pid, "S");
	assert_int_equal(quiet_read(pid, read_slowly, &reading, &asleep), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(asleep);
	assert_int_equal(reading.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readings_that_take_long_are_few),
		cmocka_unit_test(a_process_that_sleeps_is_read_once),
		cmocka_unit_test(a_process_that_never_sleeps_is_read_once),
		cmocka_unit_test(an_error_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
