/* SPDX-License-Identifier: MIT */
/* vm_machine_x86_64: the VM's registers on x86-64 (vm_x64.dasc, vm_x86.dasc). */
#ifndef LJSPY_VM_MACHINE_X86_64_H
#define LJSPY_VM_MACHINE_X86_64_H

#include "unwind/elf/register_part_x86_64.h"

enum {
	VM_BASE = RDX,
	VM_PC = RBX,
	VM_SP = RSP,
	VM_REGISTERS = REGISTER_COUNT,
};

#endif
