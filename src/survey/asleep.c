/* SPDX-License-Identifier: MIT */
#include "src/survey/asleep.h"

enum asleep_verdict asleep_capture(struct lua_process *process, struct threads *threads,
				   struct thread *thread, struct capture_hints *hints,
				   enum thread_state *ret_state, struct thread_call *ret_call)
{
	struct thread_call call, later_call;
	struct registers registers;
	enum thread_state state, later;
	uint64_t used, runs;

	/* The CPU time of a thread is exact once it sleeps. A thread that has ended counts as running. */
	if (thread_read_state(threads, thread, &state, &call) || state == THREAD_RUNNING ||
	    thread_measure(threads, thread, &used))
		return ASLEEP_RUNS;
	runs = thread->runs;
	*ret_state = state;
	*ret_call = call;
	if (!call.known)
		return ASLEEP_UNKNOWN;
	registers = thread_call_registers(&call);
	hints->tid = thread->tid;
	hints->sleeps_at = call.number >= 0 ? call.arguments[0] : 0;
	lua_process_confirm(process);
	lua_process_capture(process, &registers, hints);
	if (thread_read_state(threads, thread, &later, &later_call) || later == THREAD_RUNNING ||
	    !thread_call_is_same(&call, &later_call) || thread_measure(threads, thread, &used) || used != 0 ||
	    thread->runs != runs)
		return ASLEEP_TORN;
	return ASLEEP_HOLDS;
}
