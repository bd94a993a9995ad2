/* SPDX-License-Identifier: MIT */
#include "src/linux/threads/on_cpu.h"

enum presence on_cpu_look(struct threads *threads, struct thread *thread, struct own_turn *turn)
{
	struct switches switches;

	/* It has not got a CPU since it was last seen without one. */
	if (thread->runs && thread->runs == thread->runs_left)
		return PRESENCE_OFF_CPU;
	if (!thread->runs || thread_count_switches(threads, thread, &switches))
		return thread_is_running(threads, thread) ? PRESENCE_AWAKE : PRESENCE_OFF_CPU;
	if (switches.count < thread->runs)
		return PRESENCE_ON_CPU;
	/* Asleep or not takes less time to find out. */
	if (thread_is_running(threads, thread) && own_turn_began_at(turn, switches.left_at))
		return PRESENCE_PUT_OFF;
	thread->runs_left = thread->runs;
	return PRESENCE_OFF_CPU;
}
