/* SPDX-License-Identifier: MIT */
/* vm_machine_parts: what each machine's file of vm_machine provides for the common one. */
#ifndef LJSPY_VM_MACHINE_PARTS_H
#define LJSPY_VM_MACHINE_PARTS_H

#include "unwind/vm/vm_machine.h"

/* Run the fetched instruction; pc is already past it. */
enum vm_progress vm_machine_run_instruction(struct vm_machine *machine);

#endif
