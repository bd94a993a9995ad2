/* SPDX-License-Identifier: MIT */
/* Interrupted system calls on x86-64. */
#include "src/linux/calls/interrupted_call.h"

#include <errno.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "src/linux/calls/interrupted_call_parts.h"

/* linux/errno.h in the kernel: "restart if no handler" */
enum { ERESTARTSYS = 512, ERESTARTNOHAND = 514, ERESTART_RESTARTBLOCK = 516 };

bool interrupted_call_find(pid_t tid, const struct user_regs_struct *regs, bool *ret_limited)
{
	const struct ended_call call = {
		.number = regs->orig_rax,
		.result = (int64_t)regs->rax,
		.arguments = { regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9 },
	};

	return interrupted_call_begins_again(tid, &call, ret_limited);
}

/* Outside of a call, its number is negative. */
static bool has_call(const struct registers *registers)
{
	return (int64_t)registers->call_number >= 0;
}

bool interrupted_call_may_be(pid_t tid, const struct registers *registers)
{
	(void)tid;
	return has_call(registers);
}

bool interrupted_call_has_ended(const struct registers *registers)
{
	int64_t result = (int64_t)registers->rax;

	return has_call(registers) &&
	       (result == -EINTR || (result <= -ERESTARTSYS && result >= -ERESTART_RESTARTBLOCK));
}

/* The kernel reads the result after the stop, and decides. */
void interrupted_call_restart(pid_t tid, const struct user_regs_struct *regs, struct restarted_call *ret_call)
{
	(void)regs;
	(void)ret_call;
	ptrace(PTRACE_POKEUSER, tid, offsetof(struct user_regs_struct, rax), -(long)ERESTARTNOHAND);
}

void interrupted_call_deliver(pid_t tid, int signal, struct restarted_call *call)
{
	(void)tid;
	(void)signal;
	(void)call;
}
