/* SPDX-License-Identifier: MIT */
/*
 * absence: wakes the watch when the worker does not come by, and ljspy when it is stopped.
 *
 * What the watch does each ABSENT_NS, a worker that wakes up for its samples does by the way. So the watch
 * sleeps on for as long as the worker comes by: to set a timer anew takes the kernel a twentieth of what a
 * wake-up takes.
 *
 * The alarm's signal is SIGCONT, by which the kernel continues a process that is stopped. So one timer does
 * both, and setting it anew puts off both.
 */
#ifndef LJSPY_ABSENCE_H
#define LJSPY_ABSENCE_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { ABSENT_NS = 20 * 1000 * 1000 };

struct absence {
	timer_t alarm;
	bool has_alarm;
	sem_t *watch;
	atomic_bool is_awaited;   /* the alarm has not gone off since the worker came by */
	_Atomic uint64_t came_ns; /* CLOCK_MONOTONIC; 0: never */
};

/*
 * In the watch: have the semaphore posted each time that the worker has not come by for ABSENT_NS after it
 * did. A user may have only as many timers as pending signals (RLIMIT_SIGPENDING): without one, the worker is
 * always absent, and nobody continues ljspy.
 */
void absence_open(struct absence *absence, sem_t *watch);

/*
 * In the watch: from now on, until the worker comes by, the alarm goes off each ns; never if that is 0. Once
 * would not do: on a busy machine, the time may be over before ljspy is stopped, and before the watch sets
 * the alarm anew.
 */
void absence_set_alarm(struct absence *absence, long ns);

/*
 * In the worker: it comes by, and the alarm goes off each ABSENT_NS from now on. False if it did so a moment
 * ago, which counts, or if that is of no use.
 */
bool absence_end(struct absence *absence, uint64_t now_ns);

/* If this is false, the alarm will post the semaphore after it becomes true. */
bool absence_lasts(const struct absence *absence, uint64_t now_ns);

#endif
