/* SPDX-License-Identifier: MIT */
/* The thread that waits for signals while ljspy writes results: does it end? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/program/interruption.h"
#include "src/program/wake_signal.h"

enum { LIMIT_S = 20 };

static int block_signals(void **state)
{
	sigset_t blocked;

	(void)state;
	interruption_signals(&blocked);
	sigaddset(&blocked, WAKE_SIGNAL);
	alarm(LIMIT_S); /* ends the program, which fails the test */
	return sigprocmask(SIG_BLOCK, &blocked, NULL);
}

static void begin_and_end(void)
{
	struct interruption interruption = { .words = NULL, .lock = PTHREAD_MUTEX_INITIALIZER };

	assert_true(interruption_begin(&interruption));
	interruption_end(&interruption);
	assert_true(interruption.over);
}

static void it_ends_when_told_to(void **state)
{
	(void)state;
	begin_and_end();
}

static void it_ends_where_no_more_signals_may_be_pending(void **state)
{
	struct rlimit before, none;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_SIGPENDING, &before), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &none), 0);
	begin_and_end();
	assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_ends_when_told_to),
		cmocka_unit_test(it_ends_where_no_more_signals_may_be_pending),
	};

	return cmocka_run_group_tests(tests, block_signals, NULL);
}
