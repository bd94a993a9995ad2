/* SPDX-License-Identifier: MIT */
/*
 * tracer_looks: when the tracer is urgent, and on which CPU it awaits a look.
 */
#ifndef LJSPY_TRACER_LOOKS_H
#define LJSPY_TRACER_LOOKS_H

#include <stdbool.h>

#include "src/linux/tracer/tracer.h"

/*
 * From now on be urgent (urgent.h) from telling a thread to stop until it runs on, and
 * while a look is awaited: from the sleep until it is due to the end of the look. Only
 * for callers that hold threads for a moment. ljspy awaits the look on the given CPU
 * (visit.h), or anywhere if it is -1 or ljspy cannot be urgent enough.
 *
 * A thread that gets a signal stops, and waits until ljspy lets it go on; and while ljspy waits for a CPU,
 * looks fall due. So ljspy stays urgent for short work after a look, too, if it has used little CPU time
 * lately, or threads have got signals just now.
 */
void tracer_be_urgent(struct tracer *tracer);
/* The same for callers that may hold threads for longer: by the nice value only, and not for looks. Once. */
void tracer_be_urgent_by_nice(struct tracer *tracer);

void tracer_await_look(struct tracer *tracer, int cpu);

/* Does ljspy wait on that CPU, or has it since the look began? False where it may not be urgent. */
bool tracer_visits(const struct tracer *tracer);

/* Leave that CPU while the look goes on. True if ljspy had it until now. */
bool tracer_leave(struct tracer *tracer);

void tracer_end_look(struct tracer *tracer);

/* End the look. What comes now may take its time, and may start threads and processes. */
void tracer_take_time(struct tracer *tracer);

/* The CPU that the thread is on, or was on last; -1 if unknown. */
int tracer_cpu(const struct tracee *tracee);

/* May the thread run on one CPU only (sched_setaffinity(2))? False if unknown. */
bool tracer_is_bound(const struct tracee *tracee);

/* Can ljspy get a CPU before all others while it holds a thread (urgent.h)? */
bool tracer_may_be_first(const struct tracer *tracer);

/* As own_turn_is_used_up(); a turn in which ljspy is urgent by its policy does not end. */
bool tracer_turn_is_used_up(const struct tracer *tracer);

#endif
