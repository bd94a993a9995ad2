/* SPDX-License-Identifier: MIT */
/* signal_frame: the frame that a signal handler returns to. Each architecture has its own .c file. */
#ifndef LJSPY_SIGNAL_FRAME_H
#define LJSPY_SIGNAL_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"

/* Does a signal handler return to pc? Compares the code, as gdb and libgcc do. */
bool signal_frame_is_at(struct memory *text, uint64_t pc);

/* The flags of the interrupted code, from the frame at sp. False if the stack cannot be read. */
bool signal_frame_flags(struct memory *stack, uint64_t sp, uint64_t *ret_flags);

#endif
