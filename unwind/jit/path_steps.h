/* SPDX-License-Identifier: MIT */
/*
 * path_steps: the bytecodes that the recorder may have recorded after a bytecode.
 *
 * A step leads to the next bytecode, along a jump, to either target of a branch,
 * into a callee, or back to the caller. The trace's constants, checks and snapshots
 * rule out steps, and so does the path that leads to the bytecode. An unlikely step
 * has a cost.
 * Facts: lj_record.c (what each bytecode records, where it takes snapshots).
 */
#ifndef LJSPY_PATH_STEPS_H
#define LJSPY_PATH_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/jit/path_frames.h"
#include "unwind/jit/trace_calls.h"
#include "unwind/trace/trace.h"
#include "unwind/trace/trace_block.h"

enum {
	PATH_LENGTH_MAX = 512, /* bytecodes between two snapshots */
	PATH_STEPS_MAX = 24,   /* steps from one point */
};

/*
 * The costs of a path between two snapshots. Unlikely are: comparisons without a
 * guard, because a guarded comparison has its own snapshot; calls of functions that
 * no snapshot or check shows; and checks of functions that the path does not call.
 */
enum path_cost {
	COST_GUESSED_CALL = 1,
	COST_COMPARISON = 2,
	COST_UNEXPECTED_CALL = 2,
	COST_UNUSED_CHECK = 1,
};

/* The trace, and the data about it. */
struct path_context {
	const struct trace_numbers *numbers;
	const struct trace *trace;
	const struct layout *layout;
	struct lua_objects *objects;
	const struct trace_calls *calls;
	struct path_frames *frames; /* grows by each entered frame */
	unsigned *visits_left;      /* how many more points may be visited in search of paths */
};

/* The end that a path between two snapshots must reach. */
struct path_goal {
	bool exists;
	struct path_point point;
	bool any_frame; /* only the pc matters */
	bool is_end;    /* recording ended there, within a return or a builtin's call */
};

/* The gap between two snapshots, for which to find the path. */
struct path_gap {
	uint32_t snapshot;               /* the one at its start */
	uint32_t ref, end_ref;           /* its IR instructions */
	uint32_t first_check, end_check; /* the checks of called functions among them */
	struct path_goal goal;
};

/* A path so far. */
struct path_way {
	struct path_point points[PATH_LENGTH_MAX];
	uint32_t count;
	uint32_t checks; /* the first unused check */
};

struct path_step {
	struct path_point point;
	unsigned cost;
	uint32_t checks; /* the first check unused after it; 0: no change */
};

struct path_steps {
	struct path_step step[PATH_STEPS_MAX];
	size_t count;
};

/* Find the steps from the last point of a way. It has at least one point. */
void path_steps_find(const struct path_context *context, const struct path_gap *gap,
		     const struct path_way *way, struct path_steps *ret_steps);

/* Both targets of a branch that takes a snapshot of the target not taken. False if it is no such branch. */
bool path_branch(const struct path_context *context, const struct path_point *point,
		 uint64_t ret_pcs[static 2]);

/* May an instruction be the guard of the branch at this point? Its snapshot is taken just before. */
bool path_branch_may_guard(const struct path_context *context, const struct path_point *point, enum ir_op op);

/* Is the bytecode at this point a return? */
bool path_returns(const struct path_context *context, const struct path_point *point);

#endif
