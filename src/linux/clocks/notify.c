/* SPDX-License-Identifier: MIT */
#include "src/linux/clocks/notify.h"

#include <errno.h>
#include <stddef.h>

int notify_open(int signal, clockid_t clock, notify_handler *handle, void *context, timer_t *ret_timer)
{
	const struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent event = notify_this_thread(signal, (union sigval){ .sival_ptr = context });
	sigset_t signals;
	int error;

	sigemptyset(&signals);
	sigaddset(&signals, signal);
	if (sigaction(signal, &action, NULL))
		return -errno;
	error = pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	if (error)
		return -error;
	return timer_create(clock, &event, ret_timer) ? -errno : 0;
}

static int set(timer_t timer, long first_ns, long next_ns)
{
	const struct itimerspec times = { .it_value.tv_nsec = first_ns, .it_interval.tv_nsec = next_ns };

	return timer_settime(timer, 0, &times, NULL) ? -errno : 0;
}

int notify_every(timer_t timer, long ns)
{
	return set(timer, ns, ns);
}

int notify_once(timer_t timer, long ns)
{
	return set(timer, ns, 0);
}
