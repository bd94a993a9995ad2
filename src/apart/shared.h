/* SPDX-License-Identifier: MIT */
/*
 * shared: the memory that front, guard and engine share (see apart.h).
 *
 * No process waits for another on it. The engine reads the front's fields; the front
 * does not trust the engine's.
 */
#ifndef LJSPY_SHARED_H
#define LJSPY_SHARED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/apart/queue.h"

struct shared {
	/* The front's. */
	pid_t front_pid;
	_Atomic pid_t beat_tid;       /* the thread that beats; 0 before the first beat */
	_Atomic uint64_t beat_due_ns; /* when the next beat is overdue: CLOCK_MONOTONIC */
	_Atomic bool end_wanted;      /* the engine must conclude */

	/* Whoever notices: an errno, or 0. */
	_Atomic int wait_error;  /* front or guard cannot wait for its child */
	_Atomic int start_error; /* the guard cannot start the engine, or the engine its worker */

	/* The engine's. */
	_Atomic bool is_done;             /* it has concluded the work */
	_Atomic bool is_blocked;          /* the kernel keeps one of its threads waiting; it ends for that */
	_Atomic pid_t blocked_pid;        /* ... by whose memory; 0 if unknown */
	_Atomic bool blocked_in_exec;     /* ... which seemed to be in an execve() then */
	_Atomic bool rests;               /* it waits for a target to run */
	_Atomic uint64_t away_ns;         /* how long it stayed away because the front did not beat */
	_Atomic uint64_t guard_cpu_ns;    /* the guard's CPU time, at its end */
	_Atomic uint64_t results_version; /* odd while the engine writes the results */

	struct queue queue;
	unsigned char results[]; /* of apart_options.results_size bytes */
};

#endif
