/* SPDX-License-Identifier: MIT */
/*
 * absence: wakes the watch when the worker does not come by.
 *
 * What the watch does each ABSENT_NS, a worker that wakes up for its samples does by the way. So the watch
 * sleeps on for as long as the worker comes by: to set a timer anew takes the kernel a twentieth of what a
 * wake-up takes.
 */
#ifndef LJSPY_ABSENCE_H
#define LJSPY_ABSENCE_H

#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { ABSENT_NS = 20 * 1000 * 1000 };

/* SIGRTMAX is valgrind's, the two below it call_watch.h's and urgent.h's. */
#define ABSENCE_SIGNAL (SIGRTMAX - 3)

struct absence {
	timer_t alarm;
	bool has_alarm;
	_Atomic uint64_t came_ns; /* CLOCK_MONOTONIC; 0: never */
};

/*
 * In the watch: have the semaphore posted each time that the worker has not come by for ABSENT_NS after it
 * did. A user may have only as many timers as pending signals (RLIMIT_SIGPENDING): without one, the worker is
 * always absent.
 */
void absence_open(struct absence *absence, sem_t *watch);

/* In the worker: it comes by. False if it did so a moment ago, which counts, or if that is of no use. */
bool absence_end(struct absence *absence, uint64_t now_ns);

/* If this is false, the semaphore will be posted when it becomes true. */
bool absence_lasts(const struct absence *absence, uint64_t now_ns);

#endif
