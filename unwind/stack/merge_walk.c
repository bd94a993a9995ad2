/* SPDX-License-Identifier: MIT */
/* The step from a VM frame to its caller. */
#include "unwind/stack/merge_walk.h"

#include "unwind/vm/vm_frame.h"

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
