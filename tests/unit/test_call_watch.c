/* SPDX-License-Identifier: MIT */
/* A watch over a system call that may wait: its timer and its signal. The timer is made up. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "src/linux/tracer/call_watch.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(timer_create);
INSTEAD_OF(timer_settime);
INSTEAD_OF(timer_delete);
INSTEAD_OF(sigaction);
INSTEAD_OF(pthread_sigmask);

enum { PERIOD_NS = 10 * 1000 * 1000 };

static char timer; /* its address is the timer's id */
static struct {
	int create_error, action_error, mask_error;
	struct sigevent event;
	long period_ns; /* 0: it does not run */
	unsigned int deleted;
	struct sigaction action;
} kernel;

int __wrap_timer_create(clockid_t clock, struct sigevent *event, timer_t *ret_timer)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	kernel.event = *event;
	*ret_timer = &timer;
	errno = kernel.create_error;
	return kernel.create_error ? -1 : 0;
}

int __wrap_timer_settime(timer_t id, int flags, const struct itimerspec *times, struct itimerspec *ret_former)
{
	assert_ptr_equal(id, &timer);
	assert_int_equal(flags, 0);
	assert_null(ret_former);
	assert_int_equal(times->it_value.tv_sec, 0);
	assert_int_equal(times->it_interval.tv_sec, 0);
	assert_int_equal(times->it_interval.tv_nsec, times->it_value.tv_nsec);
	kernel.period_ns = times->it_value.tv_nsec;
	return 0;
}

int __wrap_timer_delete(timer_t id)
{
	assert_ptr_equal(id, &timer);
	kernel.deleted++;
	return 0;
}

int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *ret_former)
{
	if (number != CALL_WATCH_SIGNAL)
		return __real_sigaction(number, action, ret_former);
	kernel.action = *action;
	errno = kernel.action_error;
	return kernel.action_error ? -1 : 0;
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_former)
{
	return kernel.mask_error ? kernel.mask_error : __real_pthread_sigmask(how, set, ret_former);
}

static unsigned int acts;

static void act(void *argument)
{
	assert_ptr_equal(argument, &acts);
	acts++;
	errno = EINVAL;
}

/* The signal comes, for this watch. */
static void signal_comes(int code, struct call_watch *watch)
{
	siginfo_t info = { .si_signo = CALL_WATCH_SIGNAL, .si_code = code };

	info.si_value.sival_ptr = watch;
	errno = ENOENT;
	kernel.action.sa_sigaction(CALL_WATCH_SIGNAL, &info, NULL);
	/* It comes in the middle of anything. */
	assert_int_equal(errno, ENOENT);
}

static struct call_watch watch;

static int begin(void **state)
{
	(void)state;
	kernel = (__typeof__(kernel)){ .period_ns = -1 };
	acts = 0;
	return 0;
}

static void a_watch_acts_again_and_again_while_it_goes_on(void **state)
{
	(void)state;
	assert_int_equal(call_watch_open(&watch, act, &acts), 0);
	assert_int_equal(kernel.event.sigev_signo, CALL_WATCH_SIGNAL);
	assert_ptr_equal(kernel.event.sigev_value.sival_ptr, &watch);
	assert_int_equal(kernel.period_ns, -1); /* it does not begin by itself */
	signal_comes(SI_TIMER, &watch);
	assert_int_equal(acts, 0);
	for (unsigned int i = 1; i <= 2; i++) {
		call_watch_begin(&watch);
		assert_int_equal(kernel.period_ns, PERIOD_NS);
		signal_comes(SI_TIMER, &watch);
		signal_comes(SI_TIMER, &watch);
		assert_int_equal(acts, 2 * i);
		call_watch_end(&watch);
		assert_int_equal(kernel.period_ns, 0);
		/* One may have been on its way. */
		signal_comes(SI_TIMER, &watch);
		assert_int_equal(acts, 2 * i);
	}
	assert_int_equal(kernel.deleted, 0);
	call_watch_close(&watch);
	assert_int_equal(kernel.deleted, 1);
}

/* Its value is no watch. */
static void a_signal_of_somebody_else_does_nothing(void **state)
{
	(void)state;
	assert_int_equal(call_watch_open(&watch, act, &acts), 0);
	call_watch_begin(&watch);
	signal_comes(SI_USER, &watch);
	signal_comes(SI_QUEUE, &watch);
	signal_comes(SI_TKILL, &watch);
	assert_int_equal(acts, 0);
	call_watch_close(&watch);
}

/* Other system calls begin again. */
static void the_signal_is_taken_for_the_calling_thread(void **state)
{
	sigset_t blocked;

	(void)state;
	sigemptyset(&blocked);
	sigaddset(&blocked, CALL_WATCH_SIGNAL);
	sigaddset(&blocked, SIGUSR1);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &blocked, NULL), 0);
	assert_int_equal(call_watch_open(&watch, act, &acts), 0);
	assert_int_equal(kernel.action.sa_flags & (SA_SIGINFO | SA_RESTART), SA_SIGINFO | SA_RESTART);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
	assert_int_equal(sigismember(&blocked, CALL_WATCH_SIGNAL), 0);
	assert_int_equal(sigismember(&blocked, SIGUSR1), 1);
	call_watch_close(&watch);
}

static void why_there_is_no_watch_is_told(void **state)
{
	(void)state;
	kernel.create_error = EAGAIN;
	assert_int_equal(call_watch_open(&watch, act, &acts), -EAGAIN);
	kernel.create_error = 0;
	kernel.action_error = EINVAL;
	assert_int_equal(call_watch_open(&watch, act, &acts), -EINVAL);
	kernel.action_error = 0;
	kernel.mask_error = EPERM;
	assert_int_equal(call_watch_open(&watch, act, &acts), -EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_watch_acts_again_and_again_while_it_goes_on, begin),
		cmocka_unit_test_setup(a_signal_of_somebody_else_does_nothing, begin),
		cmocka_unit_test_setup(the_signal_is_taken_for_the_calling_thread, begin),
		cmocka_unit_test_setup(why_there_is_no_watch_is_told, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
