/* SPDX-License-Identifier: MIT */
/*
 * vm_flow: where control goes in the interpreter's code.
 */
#ifndef LJSPY_VM_FLOW_H
#define LJSPY_VM_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/vm.h"
#include "memory/memory.h"

/* A direct jump inside the VM. */
struct vm_jump {
	uint64_t from, to;
};

/* All direct jumps, and the ends of straight runs: unconditional jumps and returns. */
struct vm_flow {
	struct vm_jump *jumps;
	size_t jump_count;
	uint64_t *ends; /* the address after each instruction that never falls through, ascending */
	size_t end_count;
};

/* Read the VM's code from memory. False if there is nothing of it. Clear ret_flow in any case. */
bool vm_flow_read(struct memory *memory, const struct vm_code *vm, struct vm_flow *ret_flow);
void vm_flow_clear(struct vm_flow *flow);

#endif
