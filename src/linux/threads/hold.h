/* SPDX-License-Identifier: MIT */
/*
 * hold: a moment in which no thread of a process runs.
 *
 * Threads that run are stopped. Those that sleep are left alone, and are
 * looked at once more at the end: if one has run meanwhile, what was read is
 * not to be relied on. While one runs that may not be stopped (may_stop.h), there
 * is no such moment.
 */
#ifndef LJSPY_HOLD_H
#define LJSPY_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "src/linux/threads/threads.h"
#include "src/linux/threads/tracer.h"

struct hold;

/* NULL when memory is short. Both must outlive it. */
struct hold *hold_new(struct tracer *tracer, struct threads *threads);
void hold_free(struct hold *hold);

/* Asked before each hold of hold_while(): false to give up. NULL, as at first: never. */
void hold_go_on_while(struct hold *hold, bool (*may_go_on)(void *context), void *context);

/*
 * 0; end it soon. Or -EAGAIN: a thread could not be stopped in time, or may not
 * be, or what it sleeps in is not known; then nothing is held.
 */
int hold_begin(struct hold *hold);

/* Let go. True if nothing has run since hold_begin(). */
bool hold_end(struct hold *hold);

/*
 * Have read() look at the process in such a moment. If something ran
 * meanwhile, undo() (may be NULL) and do it again. Afterwards the threads run
 * on for as long as they were held. False if it cannot be had.
 */
bool hold_while(struct hold *hold, void (*read)(void *context), void (*undo)(void *context),
		void *context);

/* Of all that have ended: how often threads were stopped, and the longest time they were. */
uint64_t hold_count(const struct hold *hold);
uint64_t hold_longest_ns(const struct hold *hold);

#endif
