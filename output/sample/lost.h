/* SPDX-License-Identifier: MIT */
/*
 * lost: the reasons why a stack, or a part of it, is unknown.
 *
 * The text of a reason is the name of the [lost: reason] frame in place of the
 * unknown part, and the key of its count in JSON.
 *
 * LOST_NOT_STOPPED alone is also CPU time at the end, of a process whose threads have work, for
 * which no sample was taken in time. To readers that do not know a reason the recording is damaged,
 * so another text would need a new version of recordings.
 */
#ifndef LJSPY_LOST_H
#define LJSPY_LOST_H

struct function;

enum lost_reason {
	LOST_ASLEEP,        /* the thread fell asleep between the tick and its sample */
	LOST_RAN_MEANWHILE, /* the thread was not stopped, and ran while ljspy read it */
	LOST_STOP_TIMED_OUT,
	LOST_TARGET_ENDED,      /* the process, or the thread, ended before its next sample */
	LOST_NOT_ATTACHED,      /* a process ran before ljspy noticed it, or had searched it for LuaJIT */
	LOST_UNKNOWN_LAYOUT,    /* the process has a VM with an unknown layout of Lua frames */
	LOST_UNCONFIRMED,       /* no state of the VM has confirmed its layout yet */
	LOST_STATE_UNKNOWN,     /* the frames belong to a state that ljspy has not found yet */
	LOST_NO_VM_FRAME,       /* in older recordings: the native frame that entered the VM is unknown */
	LOST_NOT_CAPTURED,      /* needed memory was not copied while the target was held */
	LOST_UNREADABLE,        /* a pointer leads to unmapped memory */
	LOST_BROKEN_CHAIN,      /* the frame links do not lead to the bottom of the stack */
	LOST_HALF_DONE,         /* the thread is inside a call, return or coroutine switch */
	LOST_IN_TRACE,          /* in compiled code, the trace or the position in it is unknown */
	LOST_REGISTER_UNKNOWN,  /* the caller needs a register that a sleeping thread does not show */
	LOST_NATIVE_UNWIND,     /* unwind information is missing or wrong */
	LOST_TOO_DEEP,          /* frames beyond the limit, counted from the leaf */
	LOST_OUT_OF_MEMORY,     /* ljspy's own memory */
	LOST_NOT_STOPPED,       /* needs the thread's registers, but ljspy did not stop the thread */
	LOST_MAY_HAVE_MOVED_ON, /* the same; the frames above are those the interpreter saved last */
	LOST_ALLOCATION_UNSEEN, /* the collector's counters have these bytes, and no look at the target has */
	LOST_COUNT
};

/* The reason in words, without a full stop. */
const char *lost_reason_text(enum lost_reason reason);

/* The function of a lost frame: static, one for each reason. */
const struct function *lost_function(enum lost_reason reason);

#endif
