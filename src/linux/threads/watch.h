/* SPDX-License-Identifier: MIT */
/*
 * watch: doing something while a system call keeps the thread waiting.
 *
 * PTRACE_SEIZE waits, without bound, for an execve() of the target to get
 * through; execve() may wait for ljspy to reap a thread. Only a signal can
 * get in between: the call goes on after it (the kernel restarts it). So
 * a timer signals the thread, and what has to be done is done in the handler.
 *
 * Takes WATCH_SIGNAL for itself. No more than one watch per thread.
 */
#ifndef LJSPY_WATCH_H
#define LJSPY_WATCH_H

#include <signal.h>
#include <stdbool.h>
#include <time.h>

/* The last one is valgrind's. */
#define WATCH_SIGNAL (SIGRTMAX - 1)

struct watch {
	timer_t timer;
	volatile sig_atomic_t active;
	void (*act)(void *argument);
	void *argument;
};

/*
 * For the calling thread. Between watch_begin() and watch_end() act is called
 * every few milliseconds, wherever the thread then is; so let there be nothing
 * in between but the system call. The watch is not to be moved. 0 or a
 * negative errno.
 */
int watch_open(struct watch *watch, void (*act)(void *argument), void *argument);
void watch_close(struct watch *watch);

void watch_begin(struct watch *watch);
void watch_end(struct watch *watch);

#endif
