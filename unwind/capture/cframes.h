/* SPDX-License-Identifier: MIT */
/*
 * cframes: follow the links between the VM's C frames on a native stack.
 *
 * Each C frame of a Lua thread lies where the interpreter's stack pointer was;
 * L->cframe is the innermost, and each links to the next one outwards (lj_frame.h,
 * CFRAME_OFS_PREV). Chains that do not lead outwards are broken.
 */
#ifndef LJSPY_CFRAMES_H
#define LJSPY_CFRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/capture/capture.h"

/* The thread whose C frame lies at cframe, as the thread's links confirm; or NULL. */
const struct lua_thread *cframe_thread(const struct capture *capture, struct memory *stack,
				       const struct layout *layout, uint64_t cframe);

/* The innermost of a thread's C frames at or above a stack pointer, on the same stack; 0 if there is none. */
uint64_t cframe_above(const struct capture *capture, struct memory *stack, const struct lua_thread *thread,
		      uint64_t sp);

/* The thread with the innermost such C frame, which goes into ret_cframe; NULL if there is none. */
const struct lua_thread *cframe_thread_above(const struct capture *capture, struct memory *stack, uint64_t sp,
					     uint64_t *ret_cframe);

/* How many C frames from this one outwards run Lua frames? Those of lua_cpcall's kind do not. */
unsigned cframe_count(const struct capture *capture, struct memory *stack, const struct lua_thread *thread,
		      uint64_t cframe);

/* Do links lead outwards from one C frame to another; if to is 0, to the end? */
bool cframe_leads_to(const struct capture *capture, struct memory *stack, const struct layout *layout,
		     uint64_t from, uint64_t to);

#endif
