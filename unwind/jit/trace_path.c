/* SPDX-License-Identifier: MIT */
#include "unwind/jit/trace_path.h"

#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "unwind/jit/path_search.h"
#include "unwind/jit/path_steps.h"
#include "unwind/jit/trace_align.h"
#include "unwind/trace/trace_block.h"
#include "unwind/jit/trace_calls.h"

enum {
	FIT_WEIGHT = 4,   /* of a path's fit, against its length */
	COST_WEIGHT = 16, /* of a path's cost, against its length */
	/*
	 * Points visited in all searches of a trace, at some 3 us each. Meanwhile no signal is passed on to a
	 * tracee. Of traces of nginx with lua-resty-core that can be replayed, none takes 4000.
	 */
	VISITS_MAX = 12000,
};

struct replay {
	struct trace_path *path;
	struct path_context context;
	struct trace_calls calls;
	struct path_candidate *candidates; /* for the current segment */
	size_t candidate_count;
};

/*
 * Turn a snapshot's frames into a point. If another trace is to be stitched on, the
 * innermost frame is a builtin that was just called, and the point is its caller.
 */
static bool point_of_snapshot(const struct path_context *context, uint32_t number,
			      struct path_point *ret_point, bool *ret_in_builtin)
{
	struct trace_frame inlined[TRACE_FRAMES_MAX];
	size_t count = trace_exit_frames(context->trace, context->layout, number, inlined, TRACE_FRAMES_MAX),
	       first = 0;
	int32_t up = -1;

	if (count > 1 && inlined[0].pc && !lua_objects_proto_of_pc(context->objects, inlined[0].pc))
		first = 1;
	if (count == 0 || inlined[first].pc == 0)
		return false;
	for (size_t i = count; i-- > first;) {
		struct path_frame frame = {
			.proto = inlined[i].pc ? lua_objects_proto_of_pc(context->objects, inlined[i].pc)
					       : NULL,
			.function = inlined[i].function,
			.up = up,
			.call_pc = i + 1 < count ? inlined[i + 1].pc : 0,
			.by_continuation = i + 1 < count && inlined[i + 1].is_continuation,
			.base_slot = inlined[i].base_slot,
		};

		if (!frame.proto && (i == first || i + 1 == count))
			return false;
		up = path_frames_add(context->frames, &frame);
		if (up < 0)
			return false;
	}
	*ret_point = (struct path_point){ .frame = up, .pc = inlined[first].pc };
	*ret_in_builtin = first > 0;
	return true;
}

/*---- Segments ----*/

/* At least one; a way begins with a point. */
static bool add_points(struct trace_path *path, const struct path_point *points, size_t count)
{
	struct path_point *grown;

	if (path->point_count + count > PATH_POINTS_MAX)
		return false;
	grown = array_grow(path->points, &path->point_size, path->point_count + count, sizeof(*grown));
	if (!grown)
		return false;
	path->points = grown;
	memcpy(path->points + path->point_count, points, count * sizeof(*points));
	path->point_count += count;
	return true;
}

/* Keep the candidate that best explains the IR as this segment's path. False if there is none. */
static bool keep_best(struct replay *replay, uint32_t number, const struct path_candidate **ret_best)
{
	struct trace_path *path = replay->path;
	struct path_segment *segment = &path->segments[number];
	const struct path_alignment alignment = {
		.trace = replay->context.trace,
		.layout = replay->context.layout,
		.frames = &path->frames,
		.objects = replay->context.objects,
		.ref = segment->ref,
		.end_ref = segment->end_ref,
		.next_snapshot = number + 1,
	};
	size_t length = segment->end_ref - segment->ref;
	uint32_t *assigned = malloc((2 * length + 1) * sizeof(*assigned));
	const struct path_candidate *best = NULL;
	int32_t best_score = INT32_MIN;

	if (!assigned)
		return false;
	for (size_t i = 0; i < replay->candidate_count; i++) {
		const struct path_candidate *candidate = &replay->candidates[i];
		int32_t score = trace_align(&alignment, candidate->way.points, candidate->way.count,
					    assigned + length);

		/* Among equally good paths, take the likeliest and shortest. */
		if (score != INT32_MIN)
			score = score * FIT_WEIGHT - (int32_t)candidate->way.count -
				(int32_t)candidate->cost * COST_WEIGHT;
		if (score <= best_score)
			continue;
		best = candidate;
		best_score = score;
		memcpy(assigned, assigned + length, length * sizeof(*assigned));
	}
	if (best && add_points(path, best->way.points, best->way.count)) {
		segment->found = true;
		segment->last = segment->first + best->way.count - 1;
		for (size_t i = 0; i < length; i++)
			path->point_of[segment->ref - TRACE_REF_BASE + i] = segment->first + assigned[i];
	} else {
		best = NULL;
	}
	free(assigned);
	*ret_best = best;
	return best != NULL;
}

/* The path is unknown: keep only its start. */
static bool keep_start(struct trace_path *path, uint32_t number, const struct path_point *point)
{
	struct path_segment *segment = &path->segments[number];

	if (!add_points(path, point, 1))
		return false;
	segment->last = segment->first;
	for (uint32_t ref = segment->ref; ref < segment->end_ref; ref++)
		path->point_of[ref - TRACE_REF_BASE] = segment->first;
	return true;
}

static bool has_loop(const struct trace *trace, const struct layout *layout)
{
	uint32_t nins = trace_nins(trace, layout);
	struct trace_instruction ins;

	for (uint32_t ref = TRACE_REF_BASE; ref < nins; ref++)
		if (trace_instruction(trace, layout, ref, &ins) && ins.op == IR_LOOP)
			return true;
	return false;
}

/* A segment's goal: the next snapshot. The last segment of a loop leads back to its start, others nowhere. */
static struct path_goal goal_of(const struct replay *replay, uint32_t number)
{
	const struct path_context *context = &replay->context;
	size_t count = replay->path->segment_count;
	struct path_goal goal = { .any_frame = number + 1 == count };
	bool in_builtin = false;

	if (!goal.any_frame)
		goal.exists = point_of_snapshot(context, number + 1, &goal.point, &in_builtin);
	else
		goal.exists = has_loop(context->trace, context->layout) &&
			      point_of_snapshot(context, 0, &goal.point, &in_builtin);
	goal.is_end = goal.exists && number + 2 == count &&
		      (in_builtin || path_returns(context, &goal.point));
	return goal;
}

/*
 * The tail of a trace that links to another one stores the missing stack slots. It
 * belongs to the last bytecode, unless that was a call or return.
 */
static struct path_point tail_point(const struct trace_path *path, uint32_t number,
				    const struct path_point *start)
{
	const struct path_segment *before = &path->segments[number - 1];
	struct path_point last = path->points[before->last];

	if (!before->found || path->frames.frame[last.frame].up != path->frames.frame[start->frame].up ||
	    path->frames.frame[last.frame].proto != path->frames.frame[start->frame].proto)
		return *start;
	last.frame = start->frame;
	return last;
}

/* Add the calls of a way: a call site likely calls the same function again. */
static void add_calls(struct replay *replay, const struct path_way *way)
{
	for (uint32_t i = 1; i < way->count; i++) {
		const struct path_frame *frame = &replay->path->frames.frame[way->points[i].frame];

		if (frame->up >= 0 && frame->up == way->points[i - 1].frame && frame->proto &&
		    way->points[i].pc == frame->proto->bc)
			trace_calls_add(&replay->calls, frame->call_pc, frame->proto);
	}
}

/*
 * Was a snapshot at a branch taken for it? Its first guard is the branch's then. Without one, as for
 * constants, it is replaced by that of the target taken (lj_snap.c, lj_snap_add()).
 */
static bool is_of_branch(const struct replay *replay, uint32_t number, const struct path_point *branch)
{
	const struct path_context *context = &replay->context;
	const struct path_segment *segment = &replay->path->segments[number];
	struct trace_instruction ins;

	for (uint32_t ref = segment->ref; ref < segment->end_ref; ref++)
		if (trace_instruction(context->trace, context->layout, ref, &ins) && ins.guard)
			return path_branch_may_guard(context, branch, ins.op);
	return false;
}

/* Start at the target of a branch that its snapshot seemed to exclude. */
static void take_target(struct path_start *start)
{
	start->at_branch = false;
	start->point.pc = start->not_taken;
}

/* Replay a segment, and set *start to the start of the next one. */
static bool replay_segment(struct replay *replay, uint32_t number, struct path_start *start)
{
	struct trace_path *path = replay->path;
	struct path_segment *segment = &path->segments[number];
	struct path_gap gap = { .snapshot = number,
				.ref = segment->ref,
				.end_ref = segment->end_ref,
				.goal = goal_of(replay, number) };
	const struct path_candidate *best;

	segment->first = (uint32_t)path->point_count;
	trace_calls_checks(&replay->calls, gap.ref, gap.end_ref, &gap.first_check, &gap.end_check);
	if (start->at_branch && !is_of_branch(replay, number, &start->point))
		take_target(start);
	replay->candidate_count = path_search(&replay->context, &gap, start, replay->candidates);
	/* The guard may be another one's. */
	if (!replay->candidate_count && start->at_branch) {
		take_target(start);
		replay->candidate_count = path_search(&replay->context, &gap, start, replay->candidates);
	}
	if (replay->candidate_count && keep_best(replay, number, &best)) {
		add_calls(replay, &best->way);
		*start = (struct path_start){
			.point = best->at_branch ? best->way.points[best->way.count - 1] : gap.goal.point,
			.at_branch = best->at_branch,
			.not_taken = gap.goal.point.pc,
		};
		return true;
	}
	if (!gap.goal.exists && number > 0)
		start->point = tail_point(path, number, &start->point);
	if (!keep_start(path, number, &start->point))
		return false;
	*start = (struct path_start){ .point = gap.goal.point };
	return gap.goal.exists || number + 1 == path->segment_count;
}

/*---- The whole trace ----*/

static bool make_segments(struct trace_path *path, const struct trace *trace, const struct layout *layout)
{
	uint32_t nins = trace_nins(trace, layout);
	uint32_t ref = TRACE_REF_BASE;

	path->segment_count = trace_snapshot_count(trace, layout);
	if (path->segment_count == 0 || nins <= TRACE_REF_BASE)
		return false;
	path->instruction_count = nins - TRACE_REF_BASE;
	path->segments = calloc(path->segment_count, sizeof(*path->segments));
	path->point_of = calloc(path->instruction_count, sizeof(*path->point_of));
	if (!path->segments || !path->point_of)
		return false;
	for (uint32_t i = 0; i < path->segment_count; i++) {
		struct trace_snapshot next = { .ref = nins };

		if (i + 1 < path->segment_count && !trace_snapshot(trace, layout, i + 1, &next))
			return false;
		if (next.ref < ref || next.ref > nins)
			return false;
		path->segments[i].ref = ref;
		path->segments[i].end_ref = ref = next.ref;
	}
	return true;
}

/* Assign IR_LOOP, which stands for the jump back, to the end of the path before it. */
static void assign_loop(struct trace_path *path, const struct path_context *context)
{
	for (size_t i = 1; i < path->segment_count; i++) {
		const struct path_segment *segment = &path->segments[i];
		struct trace_instruction ins;

		for (uint32_t ref = segment->ref; ref < segment->end_ref; ref++)
			if (trace_instruction(context->trace, context->layout, ref, &ins) &&
			    ins.op == IR_LOOP)
				path->point_of[ref - TRACE_REF_BASE] = path->segments[i - 1].last;
	}
}

/*
 * IR_RETF lowers the base for all that follows. Count those before each snapshot.
 * Between two snapshots, the start frame's return is one.
 */
static void count_lowered(struct trace_path *path, const struct path_context *context)
{
	uint32_t ref = TRACE_REF_BASE, lowered = 0;

	for (size_t i = 0; i < path->segment_count; i++) {
		const struct path_segment *segment = &path->segments[i];
		struct trace_instruction ins;
		uint32_t now;

		for (; ref < segment->ref; ref++)
			if (trace_instruction(context->trace, context->layout, ref, &ins) &&
			    ins.op == IR_RETF)
				lowered++;
		now = lowered;
		for (uint32_t at = segment->first; at <= segment->last; at++) {
			struct path_point *point = &path->points[at];

			point->lowered = now;
			if (segment->found && path->frames.frame[point->frame].up < 0 &&
			    path_returns(context, point))
				now++;
		}
	}
}

static bool replay_segments(struct replay *replay)
{
	const struct path_context *context = &replay->context;
	struct path_start start = { 0 };
	bool in_builtin;

	if (!make_segments(replay->path, context->trace, context->layout) ||
	    !point_of_snapshot(context, 0, &start.point, &in_builtin))
		return false;
	trace_calls_find(&replay->calls, context->numbers, context->trace, context->layout, context->objects);
	for (uint32_t i = 0; i < replay->path->segment_count; i++)
		if (!replay_segment(replay, i, &start))
			return false;
	assign_loop(replay->path, context);
	count_lowered(replay->path, context);
	return true;
}

bool trace_path_replay(struct trace_path *path, const struct trace_numbers *numbers,
		       const struct trace *trace, const struct layout *layout, struct lua_objects *objects)
{
	unsigned visits_left = VISITS_MAX;
	struct replay replay = {
		.path = path,
		.context = {
			.numbers = numbers,
			.trace = trace,
			.layout = layout,
			.objects = objects,
			.calls = &replay.calls,
			.frames = &path->frames,
			.visits_left = &visits_left,
		},
	};
	bool done;

	*path = (struct trace_path){ 0 };
	replay.candidates = malloc(PATH_CANDIDATES_MAX * sizeof(*replay.candidates));
	done = replay.candidates && replay_segments(&replay);
	free(replay.candidates);
	if (!done)
		trace_path_clear(path);
	return done;
}

void trace_path_clear(struct trace_path *path)
{
	path_frames_clear(&path->frames);
	free(path->points);
	free(path->segments);
	free(path->point_of);
	*path = (struct trace_path){ 0 };
}
