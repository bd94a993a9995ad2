/* SPDX-License-Identifier: MIT */
/*
 * dump_stacks: from a process or core file to what is reported of it.
 *
 * Coroutines are read in slices. While threads run they are held for a slice at
 * a time, about a millisecond, and then run on for as long before the next. A
 * process that sleeps is read without a stop.
 */
#ifndef LJSPY_DUMP_STACKS_H
#define LJSPY_DUMP_STACKS_H

#include "output/reports/dump_report.h"
#include "src/inspect/lua_process.h"
#include "src/linux/threads/hold.h"

/*
 * Add the thread that was captured last; its stack and phase are found out
 * here. 0 with *ret_whole telling if none of it is lost, or -ENOMEM. If only a
 * whole stack is wanted, another one is not added.
 */
int dump_thread(struct lua_process *process, const struct dump_thread *thread, bool only_whole,
		struct dump_process *report, bool *ret_whole);

/* The same for a thread of an arm64 core file. */
int dump_arm64_thread(struct lua_process *process, const struct dump_thread *thread,
		      const struct arm64_registers *registers, struct dump_process *report,
		      bool *ret_whole);

/* Add a thread of whose stack nothing is known. 0 or -ENOMEM. */
int dump_lost_thread(const struct dump_thread *thread, enum lost_reason reason,
		     struct dump_process *report);

/*
 * Add each global_State of the process and its coroutines to the report; hold is
 * NULL for what never changes, such as a core file. 0 or -ENOMEM.
 */
int dump_coroutines(struct lua_process *process, struct hold *hold, struct dump_process *report);

#endif
