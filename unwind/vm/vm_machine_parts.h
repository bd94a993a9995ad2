/* SPDX-License-Identifier: MIT */
/*
 * vm_machine_parts: what each machine's file of vm_machine provides for the common one, and arithmetic that
 * those files share. Sizes are in bytes, from 1 to 8.
 */
#ifndef LJSPY_VM_MACHINE_PARTS_H
#define LJSPY_VM_MACHINE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/vm/vm_machine.h"

/* Run the fetched instruction; pc is already past it. */
enum vm_progress vm_machine_run_instruction(struct vm_machine *machine);

static inline uint64_t vm_value_sign_extended(uint64_t bits, unsigned int size)
{
	unsigned int shift = 64 - size * 8;

	return (uint64_t)((int64_t)(bits << shift) >> shift);
}

static inline bool vm_value_top_bit(uint64_t bits, unsigned int size)
{
	return bits >> (size * 8 - 1) & 1;
}

#endif
