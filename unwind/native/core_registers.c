/* SPDX-License-Identifier: MIT */
#include "unwind/native/core_registers.h"

#include <string.h>
#include <sys/procfs.h>
#include <sys/user.h>

bool core_registers_machine(uint16_t machine)
{
	return machine == MACHINE_OWN;
}

bool core_registers_read(const uint8_t *note, size_t size, pid_t *ret_tid, struct registers *ret_registers)
{
	struct elf_prstatus status;
	struct user_regs_struct user;

	_Static_assert(sizeof(status.pr_reg) == sizeof(user), "pr_reg is a user_regs_struct");
	if (size < sizeof(status))
		return false;
	memcpy(&status, note, sizeof(status));
	memcpy(&user, &status.pr_reg, sizeof(user));
	*ret_tid = status.pr_pid;
	registers_take(&user, ret_registers);
	return true;
}
