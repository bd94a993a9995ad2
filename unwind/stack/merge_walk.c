/* SPDX-License-Identifier: MIT */
/* What the ways through a VM frame share. */
#include "unwind/stack/merge_walk.h"

#include "unwind/vm/vm_frame.h"

struct lua_running merge_running_at(const struct merge *merge, const struct lua_thread *thread,
				    uint64_t cframe)
{
	return (struct lua_running){
		.thread = thread,
		.cframe = cframe,
		.objects = merge->lua.objects,
		.stack = merge->memory,
	};
}

enum passed merge_leave_vm_frame(struct merge *merge, const struct layout *layout, uint64_t cframe,
				 bool on_trace)
{
	struct registers caller;

	if (!vm_frame_caller(layout, merge->memory, cframe, &native_current(merge->native)->registers,
			     on_trace, &caller))
		return PASSED_LOST;
	native_continue(merge->native, &caller);
	return PASSED_ON;
}
