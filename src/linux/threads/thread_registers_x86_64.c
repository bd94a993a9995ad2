/* SPDX-License-Identifier: MIT */
/* On x86-64 the general registers say it all. */
#include "src/linux/threads/thread_registers.h"

void thread_registers_complete(pid_t tid, struct registers *registers)
{
	(void)tid;
	(void)registers;
}
