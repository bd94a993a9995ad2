/* SPDX-License-Identifier: MIT */
/*
 * made_up_calls: the Lua stack of a thread of made_up_states, on which three functions have called one
 * another.
 */
#ifndef LJSPY_MADE_UP_CALLS_H
#define LJSPY_MADE_UP_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "tests/unit/made_up_states.h"

enum {
	BOTTOM = 2, /* slots of frames' bases: of the lowest one, and of those of functions 0 to 2 */
	OUTER = 4,
	MIDDLE = 10,
	INNER = 20,
	IN_OUTER = 3, /* instructions that run */
	IN_MIDDLE = 5,
};

static inline uint64_t base_of(size_t thread, size_t slot)
{
	return slots_at(thread) + slot * SLOT_SIZE;
}

/* The interpreter's PC while this instruction of a function runs. */
static inline uint64_t pc_in(size_t function, size_t instruction)
{
	return bytecode_at(function, instruction + 1);
}

/* C code has called function 0, that function 1, and that the one at this address. */
static inline void put_three_frames(size_t thread, uint64_t innermost)
{
	put_frame(thread, OUTER, put_function(0), (OUTER - BOTTOM) * SLOT_SIZE | FRAME_CP);
	put_called_frame(thread, MIDDLE, put_function(1), 0, OUTER, IN_OUTER);
	put_called_frame(thread, INNER, innermost, 1, MIDDLE, IN_MIDDLE);
}

#endif
