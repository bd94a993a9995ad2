/* SPDX-License-Identifier: MIT */
/*
 * trace_align: which bytecode an IR instruction was recorded for.
 *
 * IR instructions are recorded in the order of the bytecode, but some leave
 * none behind and some leave many. So a stretch of both is aligned as a
 * whole: the assignment which keeps the order and fits best is taken.
 * Facts: lj_record.c, lj_ffrecord.c (which IR comes from which bytecode).
 */
#ifndef LJSPY_TRACE_ALIGN_H
#define LJSPY_TRACE_ALIGN_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/jit/path_frames.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/lua_objects.h"

struct path_alignment {
	const struct trace *trace;
	const struct layout *layout;
	const struct path_frames *frames;
	const struct lua_objects *objects;
	uint32_t ref, end_ref;		/* IR instructions to be assigned */
	uint32_t next_snapshot;		/* that follows them */
};

/*
 * Assign each instruction to one of count points; ret_points[ref - alignment->ref] is
 * its index. Gives how well they fit, for comparison; INT32_MIN without memory.
 */
int32_t trace_align(const struct path_alignment *alignment, const struct path_point *points,
		    size_t count, uint32_t *ret_points);

#endif
