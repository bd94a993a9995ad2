/* SPDX-License-Identifier: MIT */
/*
 * call_watch: do something while a system call keeps the thread waiting.
 *
 * PTRACE_SEIZE waits, without bound, for an execve() of the target to finish; the
 * execve() may wait for ljspy to reap a thread. Only a signal can interrupt the wait;
 * the kernel then restarts the call. So a timer signals the thread, and the signal
 * handler does what has to be done.
 *
 * A watch takes CALL_WATCH_SIGNAL for itself. No more than one watch per thread.
 */
#ifndef LJSPY_CALL_WATCH_H
#define LJSPY_CALL_WATCH_H

#include <signal.h>
#include <stdbool.h>
#include <time.h>

/* SIGRTMAX is valgrind's. */
#define CALL_WATCH_SIGNAL (SIGRTMAX - 1)

struct call_watch {
	timer_t timer;
	volatile sig_atomic_t active;
	void (*act)(void *argument);
	void *argument;
};

/*
 * For the calling thread. Between call_watch_begin() and call_watch_end(), a signal handler calls
 * act every 10 ms, wherever the thread is; so make only the system call in between. Do
 * not move the watch in memory. 0 or a negative errno.
 */
int call_watch_open(struct call_watch *watch, void (*act)(void *argument), void *argument);
void call_watch_close(struct call_watch *watch);

void call_watch_begin(struct call_watch *watch);
void call_watch_end(struct call_watch *watch);

#endif
