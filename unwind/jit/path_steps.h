/* SPDX-License-Identifier: MIT */
/*
 * path_steps: where the recorder may have gone on from a bytecode.
 *
 * To the next one, along a jump, one of two ways from a branch, into what is
 * called, back to the caller. What a trace's own constants, checks and
 * snapshots say narrows it down, and so does the way by which the bytecode was
 * come to; what speaks against a step is its cost.
 * Facts: lj_record.c (what each bytecode records, where it takes snapshots).
 */
#ifndef LJSPY_PATH_STEPS_H
#define LJSPY_PATH_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/jit/path_frames.h"
#include "unwind/jit/trace_calls.h"
#include "unwind/jit/traces.h"

enum {
	PATH_LENGTH_MAX = 512,	/* bytecodes between two snapshots */
	PATH_STEPS_MAX = 24,	/* ways on from one point */
};

/*
 * What may speak against a path between two snapshots: comparisons without a
 * guard, since one that left a guard has a snapshot of its own, calls of
 * functions that neither a snapshot nor a check shows, and checks of functions
 * that are not called.
 */
enum path_cost {
	COST_GUESSED_CALL = 1, COST_COMPARISON = 2, COST_UNEXPECTED_CALL = 2, COST_UNUSED_CHECK = 1,
};

/* What is known of the trace. */
struct path_context {
	const struct traces *traces;
	const struct trace *trace;
	const struct layout *layout;
	struct lua_objects *objects;
	const struct trace_calls *calls;
	struct path_frames *frames;	/* grows by those that are entered */
};

/* What the path between two snapshots has to lead to. */
struct path_goal {
	bool exists;
	struct path_point point;
	bool any_frame;		/* only the pc matters */
	bool is_end;		/* recording ended there, in the middle of a return or of a builtin's call */
};

/* Between two snapshots, where the path is to be found. */
struct path_gap {
	uint32_t ref, end_ref;			/* IR instructions */
	uint32_t first_check, end_check;	/* of functions that are called, that are among them */
	struct path_goal goal;
};

/* As far as it was gone. */
struct path_way {
	struct path_point points[PATH_LENGTH_MAX];
	uint32_t count;
	uint32_t checks;	/* the first that it has not used */
};

struct path_step {
	struct path_point point;
	unsigned cost;
	uint32_t checks;	/* the first that is not used then; 0: as before */
};

struct path_steps {
	struct path_step step[PATH_STEPS_MAX];
	size_t count;
};

/* The steps from the last point of the way. */
void path_steps_find(const struct path_context *context, const struct path_gap *gap,
		     const struct path_way *way, struct path_steps *ret_steps);

/* Both ways on from a branch that takes a snapshot of the way not taken; false if it is none. */
bool path_branch(const struct path_context *context, const struct path_point *point,
		 uint64_t ret_pcs[static 2]);

/* Does the function return here? */
bool path_returns(const struct path_context *context, const struct path_point *point);

#endif
