/* SPDX-License-Identifier: MIT */
/* On x86-64 the general registers say it all. */
#include "src/linux/tracer/thread_registers.h"

#include <errno.h>
#include <sys/ptrace.h>

enum { CODE_SEGMENT_32 = 0x23 }; /* __USER32_CS, arch/x86/include/asm/segment.h */

bool thread_registers_read_old(pid_t tid, struct user_regs_struct *ret_registers)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &registers))
		return false;
	if (registers.cs == CODE_SEGMENT_32) {
		errno = ENOTSUP;
		return false;
	}
	*ret_registers = registers;
	return true;
}

void thread_registers_complete(pid_t tid, struct registers *registers)
{
	(void)tid;
	(void)registers;
}
