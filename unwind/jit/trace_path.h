/* SPDX-License-Identifier: MIT */
/*
 * trace_path: replay the bytecode that a trace was recorded from.
 *
 * A trace is one path through bytecode, and its snapshots are points on the path.
 * Between two snapshots, ljspy searches the prototypes for paths. If several fit, it
 * takes the one that best explains the trace's IR. This assigns each IR instruction to
 * a bytecode.
 * Facts: lj_record.c (what each bytecode records, where it takes snapshots).
 */
#ifndef LJSPY_TRACE_PATH_H
#define LJSPY_TRACE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/jit/path_frames.h"
#include "unwind/trace/trace.h"
#include "unwind/lua/lua_objects.h"

enum { PATH_POINTS_MAX = 1 << 15 };

/* The part of the path after a snapshot. */
struct path_segment {
	uint32_t ref, end_ref; /* its IR instructions */
	uint32_t first, last;  /* its points, both included */
	bool found;            /* false: only the first point is known */
};

struct trace_path {
	struct path_frames frames;
	struct path_point *points;
	size_t point_count, point_size;
	struct path_segment *segments; /* one for each snapshot */
	size_t segment_count;
	uint32_t *point_of; /* by IR reference, less TRACE_REF_BASE */
	size_t instruction_count;
};

/*
 * Replay a trace. objects must hold the prototypes among its constants. The caller
 * clears *path. False, with nothing to clear, when out of memory or if the trace makes
 * no sense.
 */
bool trace_path_replay(struct trace_path *path, const struct trace_numbers *numbers,
		       const struct trace *trace, const struct layout *layout, struct lua_objects *objects);

void trace_path_clear(struct trace_path *path);

#endif
