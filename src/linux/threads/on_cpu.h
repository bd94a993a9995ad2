/* SPDX-License-Identifier: MIT */
/*
 * on_cpu: which threads have a CPU, and which wait for one.
 *
 * The kernel counts how often a thread got a CPU, and how often it left one. The second
 * count of a thread on a CPU is one less. That is exact at the moment of the look. But if
 * ljspy looks from the very CPU that the thread had until then, the look itself has put
 * the thread off its CPU: the time at which the thread left it, when ljspy came, tells.
 *
 * Threads that were woken but have not run yet have no CPU either. They are still in the
 * system call that they slept in, and a stop might end it.
 */
#ifndef LJSPY_ON_CPU_H
#define LJSPY_ON_CPU_H

#include "src/linux/clocks/own_turn.h"
#include "src/linux/threads/threads.h"

enum presence {
	PRESENCE_OFF_CPU, /* asleep, or waiting for a CPU */
	PRESENCE_ON_CPU,
	PRESENCE_PUT_OFF, /* it had a CPU until ljspy took that CPU to look */
	PRESENCE_AWAKE,   /* it has a CPU or waits for one: the kernel does not count */
};

/* Look at a thread that was just measured (thread_measure()); turn is the caller's. */
enum presence on_cpu_look(struct threads *threads, struct thread *thread, struct own_turn *turn);

#endif
