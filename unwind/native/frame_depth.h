/* SPDX-License-Identifier: MIT */
/*
 * frame_depth: where do a frame's stack pointer and frame pointer stand, by the code before its pc?
 *
 * The unwind tables of a function with a frame pointer find its frame by that register alone, which a sleeping
 * thread does not show. But most such functions keep their stack pointer at one distance from where it was when
 * they were called. This follows all paths from a function's beginning and notes both registers at each
 * instruction. Where two paths disagree, or after alloca(), there is no answer. A path also goes on behind a call
 * that never returns; so a return address that is found this way has to follow a call.
 */
#ifndef LJSPY_FRAME_DEPTH_H
#define LJSPY_FRAME_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/elf/image.h"

struct frame_depths;

/* NULL when out of memory. The image must outlive the result. */
struct frame_depths *frame_depths_new(struct image *image);
void frame_depths_free(struct frame_depths *depths);

/* From the stack pointer at the function's first instruction, as a rule below it. */
struct frame_depth {
	int64_t sp, pointer;
};

/*
 * Before the instruction that pc lies in, of the function from begin to end: where the stack pointer is, and where the
 * register with DWARF's number points to. False if that is not the same on all paths, or the code is too long.
 */
bool frame_depth_find(struct frame_depths *depths, uint64_t begin, uint64_t end, uint64_t pc, int number,
		      struct frame_depth *ret_depth);

#endif
