/* SPDX-License-Identifier: MIT */
/*
 * cframes: the VM's C frames on a native stack, by the links between them.
 *
 * Each C frame of a Lua thread lies where the interpreter's stack pointer was;
 * L->cframe is the innermost, and each leads to the next one outwards (lj_frame.h,
 * CFRAME_OFS_PREV). Chains that do not lead outwards are broken.
 */
#ifndef LJSPY_CFRAMES_H
#define LJSPY_CFRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/capture/capture.h"

/* The thread whose C frame lies here, as its links confirm; or NULL. */
const struct lua_thread *cframe_thread(const struct capture *capture, struct memory *stack,
				       const struct layout *layout, uint64_t cframe);

/* The innermost of a thread's C frames at or above a stack pointer, on the same stack; 0 if there is none. */
uint64_t cframe_above(const struct capture *capture, struct memory *stack,
		      const struct lua_thread *thread, uint64_t sp);

/* The same of all threads; NULL if there is none. */
const struct lua_thread *cframe_thread_above(const struct capture *capture, struct memory *stack,
					     uint64_t sp, uint64_t *ret_cframe);

/* How many C frames run Lua frames, from this one outwards? Those of lua_cpcall's kind do not. */
unsigned cframe_count(const struct capture *capture, struct memory *stack,
		      const struct lua_thread *thread, uint64_t cframe);

/* Do the links of one C frame lead to another one, or, if that is 0, to the end? */
bool cframe_leads_to(const struct capture *capture, struct memory *stack, const struct layout *layout,
		     uint64_t from, uint64_t to);

#endif
