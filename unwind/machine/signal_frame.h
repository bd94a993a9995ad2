/* SPDX-License-Identifier: MIT */
/* signal_frame: the frame that a signal handler returns to. Each architecture has its own .c file. */
#ifndef LJSPY_SIGNAL_FRAME_H
#define LJSPY_SIGNAL_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/elf/registers.h"

/* Does a signal handler return to pc? Compares the code, as gdb and libgcc do. */
bool signal_frame_is_at(struct memory *text, uint64_t pc);

/*
 * The registers of the interrupted code, which the kernel has put on the stack. frame: the
 * registers at the return of the handler. False if the stack cannot be read.
 */
bool signal_frame_interrupted(struct memory *stack, const struct registers *frame,
			      struct registers *ret_interrupted);

#endif
