/* SPDX-License-Identifier: MIT */
/*
 * asleep: read the stacks of a sleeping thread without a stop.
 *
 * The stacks do not change while it sleeps, and reading does not wake it. A check
 * afterwards tells whether it slept all the time.
 */
#ifndef LJSPY_ASLEEP_H
#define LJSPY_ASLEEP_H

#include "src/inspect/lua_process.h"
#include "src/linux/threads/threads.h"

enum asleep_verdict {
	ASLEEP_HOLDS,   /* copied; lua_process_unwind() may follow */
	ASLEEP_TORN,    /* it ran meanwhile, or has ended: discard the copy */
	ASLEEP_RUNS,    /* it does not sleep; nothing was read */
	ASLEEP_UNKNOWN, /* it sleeps, but the kernel does not tell where its stack is; nothing was read */
};

/*
 * Copy the stacks of the thread unless it runs. *ret_state and *ret_call are set
 * unless it runs. The figures that thread_measure() sets, such as thread->cpu_ns,
 * are from after the copy.
 */
enum asleep_verdict asleep_capture(struct lua_process *process, struct threads *threads,
				   struct thread *thread, struct capture_hints *hints,
				   enum thread_state *ret_state, struct thread_call *ret_call);

#endif
