/* SPDX-License-Identifier: MIT */
/*
 * trace_align: find the bytecode that each IR instruction was recorded for.
 *
 * LuaJIT records IR in the order of the bytecode, but some bytecodes leave no
 * instruction and some leave many. So ljspy aligns a stretch of both as a whole: it
 * takes the assignment that keeps the order and fits best.
 * Facts: lj_record.c, lj_ffrecord.c (which IR comes from which bytecode).
 */
#ifndef LJSPY_TRACE_ALIGN_H
#define LJSPY_TRACE_ALIGN_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/jit/path_frames.h"
#include "unwind/trace/trace.h"
#include "unwind/lua/lua_objects.h"

struct path_alignment {
	const struct trace *trace;
	const struct layout *layout;
	const struct path_frames *frames;
	const struct lua_objects *objects;
	uint32_t ref, end_ref;  /* IR instructions to assign */
	uint32_t next_snapshot; /* the snapshot after them */
};

/*
 * Assign each instruction to one of count points; ret_points[ref - alignment->ref] is
 * its index. Return a score for comparison (higher is better), or INT32_MIN if the
 * stretch is too long or when out of memory.
 */
int32_t trace_align(const struct path_alignment *alignment, const struct path_point *points, size_t count,
		    uint32_t *ret_points);

#endif
