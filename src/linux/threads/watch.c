/* SPDX-License-Identifier: MIT */
#include "src/linux/threads/watch.h"

#include <errno.h>
#include <pthread.h>

#include "src/linux/clocks/notify.h"

/* Longer than any system call that does not wait. */
static const long period_ns = 10 * 1000 * 1000;

static void handle_signal(int signal, siginfo_t *info, void *context)
{
	struct watch *watch = info->si_value.sival_ptr;
	int saved_errno = errno;

	(void)signal;
	(void)context;
	/* The signal may have been on its way when the watch ended, or come from elsewhere. */
	if (info->si_code == SI_TIMER && watch->active)
		watch->act(watch->argument);
	errno = saved_errno;
}

int watch_open(struct watch *watch, void (*act)(void *argument), void *argument)
{
	struct sigaction action = { .sa_sigaction = handle_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent event = notify_this_thread(WATCH_SIGNAL, (union sigval){ .sival_ptr = watch });
	sigset_t signal;

	*watch = (struct watch){ .act = act, .argument = argument };
	if (sigaction(WATCH_SIGNAL, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &watch->timer))
		return -errno;
	sigemptyset(&signal);
	sigaddset(&signal, WATCH_SIGNAL);
	return -pthread_sigmask(SIG_UNBLOCK, &signal, NULL);
}

void watch_close(struct watch *watch)
{
	timer_delete(watch->timer);
}

static void set_timer(const struct watch *watch, long ns)
{
	struct timespec period = { .tv_nsec = ns };
	struct itimerspec times = { .it_value = period, .it_interval = period };

	timer_settime(watch->timer, 0, &times, NULL);
}

void watch_begin(struct watch *watch)
{
	watch->active = 1;
	set_timer(watch, period_ns);
}

void watch_end(struct watch *watch)
{
	watch->active = 0;
	set_timer(watch, 0);
}
