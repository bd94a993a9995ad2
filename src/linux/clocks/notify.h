/* SPDX-License-Identifier: MIT */
/*
 * notify: timers that signal, mostly one thread.
 */
#ifndef LJSPY_NOTIFY_H
#define LJSPY_NOTIFY_H

#include <signal.h>
#include <time.h>
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

typedef void notify_handler(int signal, siginfo_t *info, void *context);

/*
 * Have a timer of this clock signal the calling thread, which lets the signal through. handle() finds context
 * in info->si_value.sival_ptr if info->si_code is SI_TIMER. System calls begin again. The timer does not run
 * yet; it is the caller's to delete. 0 or a negative errno.
 */
int notify_open(int signal, clockid_t clock, notify_handler *handle, void *context, timer_t *ret_timer);

/* Let a timer run out each so many ns, below a second; 0: no more. 0 or a negative errno. */
int notify_every(timer_t timer, long ns);

/* Let it run out once, in so many ns, below a second. 0 or a negative errno. */
int notify_once(timer_t timer, long ns);

#endif
