/* SPDX-License-Identifier: MIT */
#include "unwind/native/core_registers.h"

#include <string.h>

/* struct elf_prstatus (linux/elfcore.h), the same for all machines of 64 bits up to the registers. */
enum { PRSTATUS_PID = 32, PRSTATUS_REGISTERS = 112 };

bool core_registers_machine(uint16_t machine)
{
	return machine == MACHINE_OWN;
}

bool core_registers_read(const uint8_t *note, size_t size, pid_t *ret_tid, struct registers *ret_registers)
{
	struct kernel_registers registers;
	int32_t tid;

	if (size < PRSTATUS_REGISTERS + sizeof(registers))
		return false;
	memcpy(&tid, note + PRSTATUS_PID, sizeof(tid));
	memcpy(&registers, note + PRSTATUS_REGISTERS, sizeof(registers));
	*ret_tid = tid;
	registers_take(&registers, ret_registers);
	return true;
}
