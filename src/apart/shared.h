/* SPDX-License-Identifier: MIT */
/*
 * shared: the memory that front, guard and engine share (see apart.h).
 *
 * Nobody waits for anybody on it. The engine reads what the front says of
 * itself; the front does not trust what the engine says.
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
	_Atomic pid_t beat_tid;		/* of its thread that beats; 0 before the first beat */
	_Atomic uint64_t beat_due_ns;	/* it will have beaten again by then: CLOCK_MONOTONIC */
	_Atomic bool end_wanted;	/* the work is to be concluded */

	/* The engine's. */
	_Atomic bool is_done;		/* it has concluded the work by itself */
	_Atomic bool rests;		/* it waits for a target to run */
	_Atomic uint64_t away_ns;	/* for how long it stayed away as the front did not beat */
	_Atomic uint64_t guard_cpu_ns;	/* the guard's, at its end */
	_Atomic uint64_t results_version;	/* odd while they are being written */

	struct queue queue;
	unsigned char results[];	/* of apart_options.results_size bytes */
};

#endif
