/* SPDX-License-Identifier: MIT */
/*
 * frame_depth: where do a frame's stack pointer and frame pointer stand, by the code before its pc?
 *
 * The unwind tables of a function with a frame pointer find its frame by that register alone, which a
 * sleeping thread does not show. But most such functions keep their stack pointer at one place while their
 * frame stands. This follows all paths from a function's beginning, also into its parts elsewhere, and notes
 * both registers at each instruction. Not all code can be reached so: a jump table or an exception leads to
 * what no path may, and a path also goes on behind a call that never returns. So there is an answer only if
 * the whole function is plain: its stack pointer moves by constants, stands at one place at all calls and
 * jumps, and arguments that were pushed for a call are popped before the next one. There is none after
 * alloca(). What no path reaches is held to the same.
 */
#ifndef LJSPY_FRAME_DEPTH_H
#define LJSPY_FRAME_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/elf/image.h"

struct frame_question {
	uint64_t begin, end; /* of the function */
	uint64_t pc;
	int number; /* DWARF's number of the frame pointer */
};

/* From the stack pointer at the function's first instruction, as a rule below it. */
struct frame_depth {
	int64_t sp, pointer;
};

enum frame_depth_status {
	FRAME_DEPTH_FOUND,
	FRAME_DEPTH_NONE,      /* the code does not tell, or is too long */
	FRAME_DEPTH_UNDECIDED, /* it could not be read, memory is short, or *left was too little */
};

/*
 * Before the instruction that pc lies in: where the stack pointer is, and where the frame pointer points to.
 * *left is how many instructions may still be looked at; what was is taken off.
 */
enum frame_depth_status frame_depth_find(struct image *image, const struct frame_question *question,
					 unsigned int *left, struct frame_depth *ret_depth);

#endif
