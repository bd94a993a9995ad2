/* SPDX-License-Identifier: MIT */
/*
 * may_stop: whether a thread may be stopped now, as far as its system calls go.
 *
 * A stop changes some calls for good (call_nature.h), whether the thread sleeps in
 * one, was just woken and waits for a CPU, or runs in the kernel. The kernel tells
 * without a stop which call a thread sleeps in, but nothing of one that does not. So:
 *
 * - A thread that sleeps is not stopped. It tells what it sleeps in.
 * - Neither is one that waits for a CPU, unless it is known to have run since it
 *   slept last: it may just have been woken inside its call.
 * - A thread that was seen asleep in a call that does not bear a stop makes such
 *   calls, and may be in the next one at any moment, on its way into its sleep or out
 *   of it: whether it is cannot be seen while it runs, and would not hold until it stops.
 *   So it is not stopped for some seconds, and if it makes such calls less often than
 *   that, for some times as long as it once went without one. One that has made
 *   them only when its program began, to connect, is stopped like others soon.
 * - So before a thread that sleeps now and then is stopped for the first time, it must have
 *   been seen asleep a few times; only for so long as a few looks take.
 */
#ifndef LJSPY_MAY_STOP_H
#define LJSPY_MAY_STOP_H

#include "src/linux/clocks/own_turn.h"
#include "src/linux/threads/on_cpu.h"
#include "src/linux/threads/threads.h"
#include "unwind/elf/registers.h"

enum may_stop {
	MAY_STOP,		/* it is on a CPU, or was until we came */
	MAY_STOP_WAITING,	/* it waits for one, but not in a call that it slept in */
	MAY_NOT_SLEEPS,		/* or has ended */
	MAY_NOT_WAITS,		/* for a CPU, woken perhaps in the middle of a call; or for ljspy to know it */
	MAY_NOT_CALLS,		/* it is on a CPU, as above, but makes calls that do not bear it */
};

/* Ask before each tracer_stop() and its like; turn is the caller's. */
enum may_stop thread_may_stop(struct threads *threads, struct thread *thread, struct own_turn *turn);

/*
 * The same in three parts, for whoever looks at many threads and stops those that run at
 * once. After each look (on_cpu.h) note where the thread was then, and ask whether it may be
 * stopped; that takes no time. Of those that are off their CPU, see afterwards what they sleep in.
 */
void thread_note_place(struct thread *thread);
enum may_stop thread_may_stop_now(struct thread *thread, enum presence presence);
void thread_watch_sleep(struct threads *threads, struct thread *thread);

/* The thread was stopped with these registers, and is about to go on. */
void thread_note_stop(struct thread *thread, const struct registers *registers);

#endif
