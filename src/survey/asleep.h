/* SPDX-License-Identifier: MIT */
/*
 * asleep: reading the stacks of a thread that sleeps, without a stop.
 *
 * They hold still while it sleeps, and nothing that is read wakes it. Whether
 * it has slept all the time is found out afterwards.
 */
#ifndef LJSPY_ASLEEP_H
#define LJSPY_ASLEEP_H

#include "src/inspect/lua_process.h"
#include "src/linux/threads/threads.h"

enum asleep_verdict {
	ASLEEP_HOLDS,	/* copied; lua_process_unwind() may follow */
	ASLEEP_TORN,	/* it has run meanwhile, or has ended: what was copied is not to be used */
	ASLEEP_RUNS,	/* it does not sleep; nothing was read */
	ASLEEP_UNKNOWN,	/* it sleeps, but the kernel does not tell where its stack is */
};

/*
 * Copy what belongs to the thread, unless it runs. The state and the call are
 * set but if it runs; thread->cpu_ns and its like are of afterwards.
 */
enum asleep_verdict asleep_capture(struct lua_process *process, struct threads *threads,
				   struct thread *thread, struct capture_hints *hints,
				   enum thread_state *ret_state, struct thread_call *ret_call);

#endif
