/* SPDX-License-Identifier: MIT */
#include "src/linux/tracer/thread_registers.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "src/linux/calls/forgotten_call_arm64.h"

/* Newer than some headers (linux/elf.h) */
#ifndef NT_ARM_PAC_MASK
#define NT_ARM_PAC_MASK 0x406
#endif

static bool read_set(pid_t tid, unsigned long type, void *value, size_t size)
{
	struct iovec io = { value, size };

	return ptrace(PTRACE_GETREGSET, tid, type, &io) == 0 && io.iov_len == size;
}

/* Every arm64 kernel has PTRACE_GETREGSET, and no other request. */
bool thread_registers_read_old(pid_t tid, struct user_regs_struct *ret_registers)
{
	(void)tid;
	(void)ret_registers;
	errno = EIO;
	return false;
}

/* Before a stop on the way out of a call, the kernel forgets the call. */
static void complete_forgotten(pid_t tid, struct registers *registers)
{
	uint64_t x8 = registers->x[REGISTER_X8];
	bool begins;
	int64_t number = forgotten_call_number(tid, registers->pc, x8, &begins);

	if (number < 0 || (!begins && !forgotten_call_argument(tid, x8, &registers->call_argument)))
		return;
	registers->call_number = (uint64_t)number;
}

void thread_registers_complete(pid_t tid, struct registers *registers)
{
	struct {
		uint64_t data, code;
	} masks; /* struct user_pac_mask */
	uint64_t pointer;
	int32_t number;

	if (read_set(tid, NT_ARM_TLS, &pointer, sizeof(pointer)))
		registers->thread_pointer = pointer;
	if (read_set(tid, NT_ARM_PAC_MASK, &masks, sizeof(masks)))
		registers->signed_bits = masks.code;
	registers->call_argument = registers->x[REGISTER_X0];
	if (read_set(tid, NT_ARM_SYSTEM_CALL, &number, sizeof(number)))
		registers->call_number = (uint64_t)(int64_t)number;
	if ((int64_t)registers->call_number < 0)
		complete_forgotten(tid, registers);
}
