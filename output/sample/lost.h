/* SPDX-License-Identifier: MIT */
/*
 * lost: why a stack, or a part of one, could not be known.
 *
 * The text of a reason is the name of the [lost: reason] frame that stands
 * where the unknown part would be, and the key under which it is counted.
 */
#ifndef LJSPY_LOST_H
#define LJSPY_LOST_H

struct function;

enum lost_reason {
	LOST_ASLEEP,		/* the thread fell asleep between the tick and the look at it */
	LOST_RAN_MEANWHILE,	/* read without a stop, and it ran while being read */
	LOST_STOP_TIMED_OUT,
	LOST_TARGET_ENDED,
	LOST_NOT_ATTACHED,	/* a new process ran before it was noticed */
	LOST_UNKNOWN_LAYOUT,	/* a VM is known to be there, but not how it keeps its Lua frames */
	LOST_UNCONFIRMED,	/* a VM whose layout none of its states has confirmed, as yet */
	LOST_STATE_UNKNOWN,	/* of a state that is not known, as yet */
	LOST_NO_VM_FRAME,	/* Lua is running, but where the VM was entered is not known */
	LOST_NOT_CAPTURED,	/* needed memory that was not copied while the target was held */
	LOST_UNREADABLE,	/* nothing is mapped where a pointer leads */
	LOST_BROKEN_CHAIN,	/* the frame links do not lead to the bottom of the stack */
	LOST_HALF_DONE,		/* between the two ends of a call, return or coroutine switch */
	LOST_IN_TRACE,		/* compiled code whose trace or position in it is not known */
	LOST_REGISTER_UNKNOWN,	/* of a thread read asleep, and the way to the caller leads by it */
	LOST_NATIVE_UNWIND,	/* no unwind information, or it leads nowhere */
	LOST_TOO_DEEP,		/* frames beyond the limit, counted from the leaf */
	LOST_OUT_OF_MEMORY,	/* of ljspy's own */
	LOST_NOT_STOPPED,	/* the thread's registers would tell, and it was not stopped for them */
	LOST_MAY_HAVE_MOVED_ON,	/* the same: above are the frames that the interpreter saved last */
	LOST_COUNT
};

/* In words, without a full stop. */
const char *lost_reason_text(enum lost_reason reason);

/* The function of a lost frame: one for each reason, and for ever. */
const struct function *lost_function(enum lost_reason reason);

#endif
