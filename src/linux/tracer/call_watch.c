/* SPDX-License-Identifier: MIT */
#include "src/linux/tracer/call_watch.h"

#include <errno.h>

#include "src/linux/clocks/notify.h"

/* Longer than any system call that does not wait. */
static const long period_ns = 10 * 1000 * 1000;

static void handle_signal(int signal, siginfo_t *info, void *context)
{
	struct call_watch *watch = info->si_value.sival_ptr;
	int saved_errno = errno;

	(void)signal;
	(void)context;
	/* The signal may have been on its way when the watch ended, or come from elsewhere. */
	if (info->si_code == SI_TIMER && watch->active)
		watch->act(watch->argument);
	errno = saved_errno;
}

int call_watch_open(struct call_watch *watch, void (*act)(void *argument), void *argument)
{
	*watch = (struct call_watch){ .act = act, .argument = argument };
	return notify_open(CALL_WATCH_SIGNAL, CLOCK_MONOTONIC, handle_signal, watch, &watch->timer);
}

void call_watch_close(struct call_watch *watch)
{
	timer_delete(watch->timer);
}

void call_watch_begin(struct call_watch *watch)
{
	watch->active = 1;
	notify_every(watch->timer, period_ns);
}

void call_watch_end(struct call_watch *watch)
{
	watch->active = 0;
	notify_every(watch->timer, 0);
}
