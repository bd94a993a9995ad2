/* SPDX-License-Identifier: MIT */
/* nearest_stack: which of several threads may run on the stack that an address lies on. */
#ifndef LJSPY_NEAREST_STACK_H
#define LJSPY_NEAREST_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* Only address is set at first. */
struct nearest_stack {
	uint64_t address;
	uint64_t sp; /* the nearest stack pointer at or below it; 0: there is none */
};

/* Is this thread's stack pointer nearer than all before? */
static inline bool nearest_stack_takes(struct nearest_stack *nearest, uint64_t sp)
{
	if (sp <= nearest->sp || sp > nearest->address)
		return false;
	nearest->sp = sp;
	return true;
}

#endif
