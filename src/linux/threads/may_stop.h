/* SPDX-License-Identifier: MIT */
/*
 * may_stop: whether ljspy may stop a thread now, judged by its system calls.
 *
 * A stop changes some calls for good (call_nature.h), whether the thread sleeps in the
 * call, was just woken and waits for a CPU, or runs in the kernel. Without a stop, the
 * kernel tells which call a thread sleeps in, but nothing about a thread that is awake.
 * So:
 *
 * - ljspy does not stop a thread that sleeps, but notes what it sleeps in.
 * - ljspy does not stop a thread that waits for a CPU, unless it knows that the thread has
 *   run since its last sleep: something may just have woken the thread inside its call.
 * - If ljspy has seen a thread asleep in a call that does not bear a stop, the thread may
 *   be in the next such call at any moment, on its way into or out of its sleep. ljspy
 *   cannot see that while the thread runs, and it might change before the thread stops. So
 *   ljspy does not stop the thread for some seconds. If the thread makes such calls less
 *   often, ljspy waits for a multiple of the longest time between two of them. ljspy soon
 *   stops a thread again that made such calls only when its program began, to connect.
 * - So before ljspy first stops a thread that sleeps now and then, it must have seen the
 *   thread asleep a few times. It waits only for a few looks.
 */
#ifndef LJSPY_MAY_STOP_H
#define LJSPY_MAY_STOP_H

#include "src/linux/clocks/own_turn.h"
#include "src/linux/threads/on_cpu.h"
#include "src/linux/threads/threads.h"
#include "unwind/elf/registers.h"

enum may_stop {
	MAY_STOP,         /* it is on a CPU, or was until ljspy took that CPU */
	MAY_STOP_WAITING, /* it waits for a CPU, but not in a call that it slept in */
	MAY_NOT_SLEEPS,   /* it sleeps, or has ended */
	MAY_NOT_WAITS,    /* it waits for a CPU, and has not run since it slept: perhaps inside its call */
	MAY_NOT_YET,      /* as with MAY_STOP or MAY_STOP_WAITING, but its calls are not known yet */
	MAY_NOT_CALLS,    /* as with MAY_STOP, but it makes calls that do not bear a stop */
	MAY_NOT_CALLS_WAITING, /* the same as with MAY_STOP_WAITING */
};

/* Ask before each tracer_stop(), tracer_stop_running() or tracer_stop_seen(); turn is the caller's. */
enum may_stop thread_may_stop(struct threads *threads, struct thread *thread, struct own_turn *turn);

/*
 * The same in three parts, for a caller that looks at many threads and stops those that
 * run at once. After each look (on_cpu.h), note where the thread was, and ask whether it
 * may be stopped; that takes no time. Afterwards look at the threads that are off their CPU
 * and note what they sleep in.
 */
void thread_note_place(struct thread *thread);
enum may_stop thread_may_stop_now(struct thread *thread, enum presence presence);
void thread_watch_sleep(struct threads *threads, struct thread *thread);

/*
 * Note that the thread is stopped with these registers, and after tracer_resume(), that it was. Only the
 * first can tell for certain whether its call bore the stop, but the thread waits meanwhile, some 15 us. So
 * once a thread's calls have proved harmless, the second does, until one of them seems not to be.
 */
void thread_note_stop(struct thread *thread, const struct registers *registers);
void thread_note_resumed(struct thread *thread, const struct registers *registers);

#endif
