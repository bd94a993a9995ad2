/* SPDX-License-Identifier: MIT */
/* vm_machine_arm64: the VM's registers on arm64 (vm_arm64.dasc). */
#ifndef LJSPY_VM_MACHINE_ARM64_H
#define LJSPY_VM_MACHINE_ARM64_H

#include "unwind/elf/registers.h"

enum {
	VM_BASE = 19,
	VM_PC = 21,
	VM_GL = 22,
	VM_SP = REGISTER_NUMBER_SP,
	VM_REGISTERS = 32, /* x0 to x30, sp */
};

#endif
