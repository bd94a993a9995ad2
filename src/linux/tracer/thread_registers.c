/* SPDX-License-Identifier: MIT */
#include "src/linux/tracer/thread_registers.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t own_stack_address(pid_t tid)
{
	uint64_t head = 0;
	size_t length;

	return syscall(SYS_get_robust_list, tid, &head, &length) == 0 ? head : 0;
}
