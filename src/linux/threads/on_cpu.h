/* SPDX-License-Identifier: MIT */
/*
 * on_cpu: which threads have a CPU, as opposed to waiting for one.
 *
 * The kernel counts how often a thread was given a CPU, and how often it has left one:
 * a thread that has one has left one less. That is exact at the moment of
 * the look. But where ljspy can only look from the very CPU that
 * the thread has had until then, it is off it by that: then it counts when
 * the thread left its CPU, and that was when ljspy came.
 *
 * Threads that were woken but have not run yet have no CPU either. They
 * are still in the system call that they were asleep in, and a stop might end it.
 */
#ifndef LJSPY_ON_CPU_H
#define LJSPY_ON_CPU_H

#include "src/linux/clocks/own_turn.h"
#include "src/linux/threads/threads.h"

enum presence {
	PRESENCE_OFF_CPU,	/* asleep, or waiting for a CPU */
	PRESENCE_ON_CPU,
	PRESENCE_PUT_OFF,	/* it had one, until ljspy took that to look */
	PRESENCE_AWAKE,		/* it has one or waits for one: the kernel does not count */
};

/* Of a thread that was just measured; turn is the caller's. */
enum presence on_cpu_look(struct threads *threads, struct thread *thread, struct own_turn *turn);

#endif
