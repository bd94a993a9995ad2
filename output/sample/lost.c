#include "output/sample/lost.h"

const char *lost_reason_text(enum lost_reason reason)
{
	static const char *const texts[LOST_COUNT] = {
		[LOST_ASLEEP] = "thread asleep when sampled",
		[LOST_RAN_MEANWHILE] = "thread ran while being read",
		[LOST_STOP_TIMED_OUT] = "stop timed out",
		[LOST_TARGET_ENDED] = "target ended",
		[LOST_NOT_ATTACHED] = "process not yet noticed",
		[LOST_UNKNOWN_LAYOUT] = "layout not known",
		[LOST_UNCONFIRMED] = "layout not confirmed",
		[LOST_STATE_UNKNOWN] = "state not yet found",
		[LOST_NO_VM_FRAME] = "no VM frame",
		[LOST_NOT_CAPTURED] = "memory not captured",
		[LOST_UNREADABLE] = "memory unreadable",
		[LOST_BROKEN_CHAIN] = "frame chain broken",
		[LOST_HALF_DONE] = "inside half-done call or return",
		[LOST_IN_TRACE] = "position in trace unknown",
		[LOST_REGISTER_UNKNOWN] = "register unknown while asleep",
		[LOST_NATIVE_UNWIND] = "native unwinding failed",
		[LOST_TOO_DEEP] = "stack too deep",
		[LOST_OUT_OF_MEMORY] = "out of memory",
		[LOST_NOT_STOPPED] = "not stopped",
		[LOST_MAY_HAVE_MOVED_ON] = "may have moved on from here",
	};

	return texts[reason];
}
