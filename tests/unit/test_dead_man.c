/* SPDX-License-Identifier: MIT */
/* Who continues a process that is stopped, and what this takes. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/apart/dead_man.h"
#include "src/linux/clocks/clock.h"
#include "tests/unit/instead_of.h"

enum {
	FIRST_NS = 20 * 1000 * 1000,
	MOMENT_NS = 4 * 1000 * 1000,
	PATIENCE = 5000, /* moments */
};

static const uint64_t some_ns = UINT64_C(1000) * NS_PER_SECOND;

static struct dead_man dead_man;
static unsigned int sets;

INSTEAD_OF(timer_settime);
int __wrap_timer_settime(timer_t timer, int flags, const struct itimerspec *time, struct itimerspec *ret_old)
{
	sets++;
	return __real_timer_settime(timer, flags, time, ret_old);
}

static void pause_for(long ns)
{
	struct timespec left = { .tv_nsec = ns };

	while (nanosleep(&left, &left))
		;
}

static void sleep_out(long ns)
{
	const struct timespec whole = { .tv_nsec = ns };

	nanosleep(&whole, NULL);
}

static bool is_pending(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGCONT);
}

/* What the child does before it is stopped. */
static void let_it_run_out_in_vain(void)
{
	dead_man_set(&dead_man, FIRST_NS);
	for (int i = 0; i < 3; i++)
		sleep_out(DEAD_MAN_LATER_NS); /* each signal cuts one short */
}

/* Its signal waits then, as where the thread that is to take it waits for a CPU. */
static void let_the_first_signal_wait(void)
{
	sigset_t signals;
	uint64_t begin;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCONT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	do { /* where this has taken so long that the second one may have run out, too */
		struct timespec none = { 0 };

		dead_man_set(&dead_man, 0);
		while (is_pending())
			sigtimedwait(&signals, NULL, &none);
		begin = clock_now_ns(CLOCK_MONOTONIC);
		dead_man_set(&dead_man, FIRST_NS);
		while (!is_pending())
			pause_for(MOMENT_NS / 4);
	} while (clock_now_ns(CLOCK_MONOTONIC) - begin > DEAD_MAN_LATER_NS / 2);
}

static void put_off_now(void)
{
	dead_man_put_off(&dead_man, FIRST_NS, clock_now_ns(CLOCK_MONOTONIC));
}

_Noreturn static void be_stopped(void (*prepare)(void))
{
	dead_man_open(&dead_man);
	prepare();
	raise(SIGSTOP);
	_exit(0);
}

static void assert_goes_on_after(void (*prepare)(void))
{
	const pid_t child = fork();
	int status = 0;
	pid_t waited = 0;

	assert_true(child >= 0);
	if (child == 0)
		be_stopped(prepare);
	for (int i = 0; i < PATIENCE && waited == 0; i++) {
		pause_for(MOMENT_NS);
		waited = waitpid(child, &status, WNOHANG);
	}
	if (waited == 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	assert_int_equal(waited, child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void who_is_stopped_goes_on(void **state)
{
	(void)state;
	assert_goes_on_after(put_off_now);
}

static void so_it_does_after_a_timer_has_run_out_in_vain(void **state)
{
	(void)state;
	assert_goes_on_after(let_it_run_out_in_vain);
}

static void so_it_does_where_the_stop_discards_the_signal_of_the_first_timer(void **state)
{
	(void)state;
	assert_goes_on_after(let_the_first_signal_wait);
}

/* The timers do not run out meanwhile: each is set for longer. */
static unsigned int sets_of_put_off(uint64_t now_ns)
{
	sets = 0;
	dead_man_put_off(&dead_man, NS_PER_SECOND / 2, now_ns);
	return sets;
}

static void to_put_it_off_takes_two_calls_now_and_then_and_else_one(void **state)
{
	const uint64_t later_ns = some_ns + DEAD_MAN_LATER_NS;

	(void)state;
	assert_int_equal(sets_of_put_off(some_ns), 2);
	assert_int_equal(sets_of_put_off(some_ns + 1), 1);
	assert_int_equal(sets_of_put_off(some_ns + DEAD_MAN_LATER_NS / 4), 1);
	assert_int_equal(sets_of_put_off(later_ns), 2);
	assert_int_equal(sets_of_put_off(later_ns + 1), 1);
}

static bool runs(const struct dead_man_timer *timer)
{
	struct itimerspec left;

	assert_int_equal(timer_gettime(timer->timer, &left), 0);
	return left.it_value.tv_sec || left.it_value.tv_nsec;
}

static void it_may_never_go_off(void **state)
{
	(void)state;
	dead_man_set(&dead_man, NS_PER_SECOND / 2);
	assert_true(runs(&dead_man.first) && runs(&dead_man.second));
	dead_man_set(&dead_man, 0);
	assert_false(runs(&dead_man.first) || runs(&dead_man.second));
}

static int begin(void **state)
{
	(void)state;
	dead_man = (struct dead_man){ 0 };
	dead_man_open(&dead_man);
	return !dead_man.first.is_there || !dead_man.second.is_there;
}

static int end(void **state)
{
	(void)state;
	timer_delete(dead_man.first.timer);
	timer_delete(dead_man.second.timer);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_stopped_goes_on),
		cmocka_unit_test(so_it_does_after_a_timer_has_run_out_in_vain),
		cmocka_unit_test(so_it_does_where_the_stop_discards_the_signal_of_the_first_timer),
		cmocka_unit_test_setup_teardown(to_put_it_off_takes_two_calls_now_and_then_and_else_one,
						begin, end),
		cmocka_unit_test_setup_teardown(it_may_never_go_off, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
