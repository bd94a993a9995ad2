/* SPDX-License-Identifier: MIT */
/*
 * hold: a moment in which no thread of a process runs.
 *
 * ljspy stops threads that run and leaves sleeping ones alone. At the end it checks the
 * sleeping ones: if one has run meanwhile, it discards the data that it read. While a
 * thread runs that ljspy may not stop (may_stop.h), there is no such moment.
 */
#ifndef LJSPY_HOLD_H
#define LJSPY_HOLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/linux/threads/threads.h"
#include "src/linux/tracer/tracer.h"

struct hold;

/* NULL when memory is short. tracer and threads must outlive it. */
struct hold *hold_new(struct tracer *tracer, struct threads *threads);
void hold_free(struct hold *hold);

/*
 * hold_while() calls may_go_on() before each hold, and gives up if that is false. NULL, the default: go on.
 */
void hold_go_on_while(struct hold *hold, bool (*may_go_on)(void *context), void *context);
bool hold_may_go_on(const struct hold *hold);

/*
 * Leave a thread alone, too, that waits for a CPU and has slept a moment ago: nothing else of it changes
 * either.
 * It may be in its call still, or anywhere; read() has no registers of it.
 */
void hold_take_waiting(struct hold *hold);

/*
 * Call read() while the process is held. If something ran meanwhile, call undo() (may be
 * NULL) and try again. After each hold let the threads run on for as long as they were held.
 * False if it gives up: after many failures, or if these have held threads for long.
 */
bool hold_while(struct hold *hold, void (*read)(void *context), void (*undo)(void *context), void *context);

/*
 * How the last hold_while() found the process. Where it was not at once as read() saw it, what read() saw is
 * of a later moment, and not of a random one: it comes after a run, or with a wake-up.
 */
enum hold_start {
	HOLD_AT_ONCE,
	HOLD_RAN,    /* at first, a thread ran that could not be stopped */
	HOLD_WAITED, /* at first, a thread that had been running got no CPU to stop on */
	HOLD_WOKE,   /* at first, what slept woke while it was read, or had been woken */
};
enum hold_start hold_start(const struct hold *hold);

/* For read(): is there a thread that hold_take_waiting() left alone? */
bool hold_has_waiting(const struct hold *hold);

/* For read(): is a thread stopped, or does the whole process sleep by itself? */
bool hold_has_stopped(const struct hold *hold);

/*
 * For read(): since when the first thread that stopped stands still, CLOCK_MONOTONIC; 0 if none is stopped.
 */
uint64_t hold_began_ns(const struct hold *hold);

/* For read(): the registers of that thread; NULL unless it is stopped. */
const struct registers *hold_registers(const struct hold *hold, pid_t tid);

/*
 * For read(): the registers of the thread that is on the stack with this address, if any is: of all that are
 * stopped or asleep, the one with the stack pointer nearest below it. False if there is none.
 */
bool hold_find_on_stack(const struct hold *hold, uint64_t address, pid_t *ret_tid,
			struct registers *ret_registers);

/*
 * Of all holds that have ended, since hold_count_anew() if it was called: how many stopped a thread, and the
 * longest time of these, until the call that let the last thread go on.
 */
void hold_count_anew(struct hold *hold);
uint64_t hold_count(const struct hold *hold);
uint64_t hold_longest_ns(const struct hold *hold);
uint64_t hold_total_ns(const struct hold *hold); /* and the sum of their times */

#endif
