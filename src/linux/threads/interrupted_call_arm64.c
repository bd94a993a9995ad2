/* SPDX-License-Identifier: MIT */
/*
 * Interrupted system calls on arm64.
 *
 * The kernel itself begins again all that return ERESTART*: before the stop it has put
 * back the first argument and the pc, and forgotten that there was a call (do_signal(),
 * arch/arm64/kernel/signal.c). A call that has ended with EINTR cannot be begun again from
 * here: its result lies over its first argument, which the kernel does not tell.
 */
#include "src/linux/threads/interrupted_call.h"

#include <errno.h>
#include <sys/user.h>

bool interrupted_call_find(pid_t tid, const struct user_regs_struct *regs, bool *ret_limited)
{
	(void)tid;
	(void)regs;
	(void)ret_limited;
	return false;
}

/* The kernel no longer tells whether there was a call, but a result like this one has no other cause. */
bool interrupted_call_has_ended(const struct registers *registers)
{
	return registers_call_result(registers) == -EINTR;
}

void interrupted_call_restart(pid_t tid)
{
	(void)tid;
}
