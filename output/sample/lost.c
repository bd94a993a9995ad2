/* SPDX-License-Identifier: MIT */
#include "output/sample/lost.h"

#include "output/sample/frame.h"

static const struct function functions[LOST_COUNT] = {
	[LOST_ASLEEP] = { .kind = FRAME_LOST, .name = "thread asleep when sampled" },
	[LOST_RAN_MEANWHILE] = { .kind = FRAME_LOST, .name = "thread ran while being read" },
	[LOST_STOP_TIMED_OUT] = { .kind = FRAME_LOST, .name = "stop timed out" },
	[LOST_TARGET_ENDED] = { .kind = FRAME_LOST, .name = "target ended" },
	[LOST_NOT_ATTACHED] = { .kind = FRAME_LOST, .name = "process not yet noticed" },
	[LOST_UNKNOWN_LAYOUT] = { .kind = FRAME_LOST, .name = "layout not known" },
	[LOST_UNCONFIRMED] = { .kind = FRAME_LOST, .name = "layout not confirmed" },
	[LOST_STATE_UNKNOWN] = { .kind = FRAME_LOST, .name = "state not yet found" },
	[LOST_NO_VM_FRAME] = { .kind = FRAME_LOST, .name = "no VM frame" },
	[LOST_NOT_CAPTURED] = { .kind = FRAME_LOST, .name = "memory not captured" },
	[LOST_UNREADABLE] = { .kind = FRAME_LOST, .name = "memory unreadable" },
	[LOST_BROKEN_CHAIN] = { .kind = FRAME_LOST, .name = "frame chain broken" },
	[LOST_HALF_DONE] = { .kind = FRAME_LOST, .name = "inside half-done call or return" },
	[LOST_IN_TRACE] = { .kind = FRAME_LOST, .name = "position in trace unknown" },
	[LOST_REGISTER_UNKNOWN] = { .kind = FRAME_LOST, .name = "register unknown while asleep" },
	[LOST_NATIVE_UNWIND] = { .kind = FRAME_LOST, .name = "native unwinding failed" },
	[LOST_TOO_DEEP] = { .kind = FRAME_LOST, .name = "stack too deep" },
	[LOST_OUT_OF_MEMORY] = { .kind = FRAME_LOST, .name = "out of memory" },
	[LOST_NOT_STOPPED] = { .kind = FRAME_LOST, .name = "not stopped" },
	[LOST_MAY_HAVE_MOVED_ON] = { .kind = FRAME_LOST, .name = "may have moved on from here" },
	[LOST_ALLOCATION_UNSEEN] = { .kind = FRAME_LOST, .name = "who allocated was not seen" },
};

const char *lost_reason_text(enum lost_reason reason)
{
	return functions[reason].name;
}

const struct function *lost_function(enum lost_reason reason)
{
	return &functions[reason];
}
