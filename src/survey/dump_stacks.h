/* SPDX-License-Identifier: MIT */
/*
 * dump_stacks: fill a report with the stacks of a process or core file.
 *
 * ljspy reads coroutines in slices. It holds threads that run for one slice at a
 * time, about a millisecond, and lets them run on for as long before the next.
 * It reads a sleeping process without a stop.
 */
#ifndef LJSPY_DUMP_STACKS_H
#define LJSPY_DUMP_STACKS_H

#include "output/reports/dump_report.h"
#include "src/inspect/lua_process.h"
#include "src/linux/threads/hold.h"

/*
 * Unwind the thread captured last, find its phase and add it to the report; with
 * only_whole, only if no part of the stack is lost. 0 with *ret_whole telling
 * whether none is lost, or -ENOMEM.
 */
int dump_thread(struct lua_process *process, const struct dump_thread *thread, bool only_whole,
		struct dump_process *report, bool *ret_whole);

/* Is no part of a stack lost? */
bool dump_is_whole(const struct frame *frames, size_t count);

/* Add a thread whose stack is unknown for that reason. 0 or -ENOMEM. */
int dump_lost_thread(const struct dump_thread *thread, enum lost_reason reason, struct dump_process *report);

/*
 * Add each global_State of the process and its coroutines to the report. hold is
 * NULL if nothing changes meanwhile, as in a core file. 0 or -ENOMEM.
 */
int dump_coroutines(struct lua_process *process, struct hold *hold, struct dump_process *report);

#endif
