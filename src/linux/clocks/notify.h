/* SPDX-License-Identifier: MIT */
/*
 * notify: timers that signal one thread.
 */
#ifndef LJSPY_NOTIFY_H
#define LJSPY_NOTIFY_H

#include <signal.h>
#include <unistd.h>

/* glibc 2.36 has the field, but not yet this name for it. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* For timer_create(): signal the calling thread. */
static inline struct sigevent notify_this_thread(int signal, union sigval value)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = signal,
		.sigev_value = value,
	};

	event.sigev_notify_thread_id = gettid();
	return event;
}

#endif
