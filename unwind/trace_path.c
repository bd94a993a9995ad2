#include "unwind/trace_path.h"

#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "unwind/luajit.h"
#include "unwind/trace_align.h"
#include "unwind/trace_block.h"

enum {
	CONSTANTS_MAX = 256,	/* functions and prototypes of a trace that are considered */
	LENGTH_MAX = 512,	/* bytecodes between two snapshots */
	VISITS_MAX = 12000,	/* points looked at for one segment and budget */
	CANDIDATES_MAX = 32,	/* paths compared for one segment */
	CALLS_MAX = 256,	/* places of calls that are known */
	CHECKS_MAX = 512,	/* of functions that are called, in one trace */
	NOTED_MAX = 600,	/* snapshots that are looked through for them */
	NEIGHBOURS = 40,	/* traces, likewise */
	FIT_WEIGHT = 4,		/* against the length of a path */
	COST_WEIGHT = 16,	/* and its cost */
	STEPS_MAX = 24,		/* ways on from one point */
	FRAMES_MAX = 1 << 16,
	BCBIAS_J = 0x8000,
};

/*
 * What may speak against a path between two snapshots: comparisons without a
 * guard, since one that left a guard has a snapshot of its own, calls of
 * functions that neither a snapshot nor a check shows, and checks of functions
 * that are not called. Paths are looked for by rising cost.
 */
enum {
	COST_GUESSED_CALL = 1, COST_COMPARISON = 2, COST_UNEXPECTED_CALL = 2, COST_UNUSED_CHECK = 1,
	COST_MAX = 6
};

struct candidate {
	struct path_point points[LENGTH_MAX];
	uint32_t count;
	uint32_t checks;	/* the first that it has not used */
	bool at_branch;		/* ends at the branch whose other side the goal is */
	unsigned cost;
};

/* What the path between two snapshots has to lead to. */
struct goal {
	bool exists;
	struct path_point point;
	bool any_frame;		/* only the pc matters */
	bool is_end;		/* recording ended there, in the middle of a return or of a builtin's call */
};

/* Of the function that is called, before it is (rec_call_specialize()). */
struct check {
	uint32_t ref;
	const struct proto *callee;	/* NULL for a builtin */
};

struct replay {
	struct trace_path *path;
	const struct traces *traces;
	const struct trace *trace;
	const struct layout *layout;
	struct lua_objects *objects;
	const struct proto *callees[CONSTANTS_MAX];
	size_t callee_count;
	const struct function_object *functions[CONSTANTS_MAX];	/* of Lua, among the constants */
	size_t function_count;
	bool has_builtin;
	struct check checks[CHECKS_MAX];
	uint32_t check_count;
	/* Calls that some snapshot or check shows: the same place mostly calls the same function. */
	struct {
		uint64_t pc;
		const struct proto *callee;
	} calls[CALLS_MAX];
	size_t call_count;
	unsigned snapshots_noted;
	/* The search at hand. */
	struct goal goal;
	uint32_t ref, end_ref;
	uint32_t first_check, end_check;	/* that are among them */
	unsigned visits;
	unsigned budget;
	struct candidate now;
	struct candidate *candidates;
	size_t candidate_count;
	bool immediate;		/* one of them has no length at all */
};

/*---- Frames ----*/

static int32_t add_frame(struct replay *replay, const struct path_frame *frame)
{
	struct trace_path *path = replay->path;

	if (path->frame_count == path->frame_size) {
		size_t size = path->frame_size ? path->frame_size * 2 : 64;
		struct path_frame *larger = size > FRAMES_MAX ? NULL :
			realloc(path->frames, size * sizeof(*larger));

		if (!larger)
			return -1;
		path->frames = larger;
		path->frame_size = size;
	}
	path->frames[path->frame_count] = *frame;
	return (int32_t)path->frame_count++;
}

static const struct path_frame *frame_at(const struct replay *replay, int32_t index)
{
	return &replay->path->frames[index];
}

static bool is_same_frame(const struct replay *replay, int32_t left, int32_t right)
{
	while (left != right) {
		const struct path_frame *a, *b;

		if (left < 0 || right < 0)
			return false;
		a = frame_at(replay, left);
		b = frame_at(replay, right);
		if (a->proto != b->proto || (a->up >= 0 && a->call_pc != b->call_pc))
			return false;
		left = a->up;
		right = b->up;
	}
	return true;
}

static void note_call(struct replay *replay, uint64_t pc, const struct proto *callee)
{
	if (!pc || !callee || replay->call_count == CALLS_MAX)
		return;
	for (size_t i = 0; i < replay->call_count; i++)
		if (replay->calls[i].pc == pc && replay->calls[i].callee == callee)
			return;
	replay->calls[replay->call_count].pc = pc;
	replay->calls[replay->call_count++].callee = callee;
}

/* The calls that a trace's snapshots show. */
static void note_calls(struct replay *replay, const struct trace *trace)
{
	struct trace_frame inlined[TRACE_FRAMES_MAX];
	uint32_t snapshots = trace_snapshot_count(trace, replay->layout);

	for (uint32_t number = 0; number < snapshots && replay->snapshots_noted < NOTED_MAX; number++) {
		size_t count = trace_exit_frames(trace, replay->layout, number, inlined,
						 TRACE_FRAMES_MAX);

		replay->snapshots_noted++;
		for (size_t i = 0; i + 1 < count; i++)
			if (inlined[i].pc && !inlined[i + 1].is_continuation)
				note_call(replay, inlined[i + 1].pc,
					  lua_objects_proto_of_pc(replay->objects, inlined[i].pc));
	}
}

/* Of this trace and those compiled shortly before and after it, which mostly are of the same code. */
static void note_all_calls(struct replay *replay)
{
	note_calls(replay, replay->trace);
	for (uint32_t distance = 1; distance <= NEIGHBOURS; distance++) {
		const struct trace *before = distance < replay->trace->number
			? traces_seen(replay->traces, replay->trace->number - distance) : NULL;
		const struct trace *after = traces_seen(replay->traces,
							replay->trace->number + distance);

		if (before)
			note_calls(replay, before);
		if (after)
			note_calls(replay, after);
	}
}

/*
 * The frames of a snapshot, as a point. Where another trace is to be stitched on,
 * they begin with a builtin that has just been called, whose caller is the point.
 */
static bool point_of_snapshot(struct replay *replay, uint32_t number, struct path_point *ret_point,
			      bool *ret_in_builtin)
{
	struct trace_frame inlined[TRACE_FRAMES_MAX];
	size_t count = trace_exit_frames(replay->trace, replay->layout, number, inlined,
					 TRACE_FRAMES_MAX), first = 0;
	int32_t up = -1;

	if (count > 1 && inlined[0].pc && !lua_objects_proto_of_pc(replay->objects, inlined[0].pc))
		first = 1;
	if (count == 0 || inlined[first].pc == 0)
		return false;
	for (size_t i = count; i-- > first;) {
		struct path_frame frame = {
			.proto = inlined[i].pc
				? lua_objects_proto_of_pc(replay->objects, inlined[i].pc) : NULL,
			.function = inlined[i].function,
			.up = up,
			.call_pc = i + 1 < count ? inlined[i + 1].pc : 0,
			.by_continuation = i + 1 < count && inlined[i + 1].is_continuation,
			.base_slot = inlined[i].base_slot,
		};

		if (!frame.proto && (i == first || i + 1 == count))
			return false;
		up = add_frame(replay, &frame);
		if (up < 0)
			return false;
	}
	*ret_point = (struct path_point){ .frame = up, .pc = inlined[first].pc };
	*ret_in_builtin = first > 0;
	return true;
}

/*---- Steps ----*/

struct step {
	struct path_point point;
	unsigned cost;
	uint32_t checks;	/* the first that is not used then; 0: as before */
};

struct steps {
	struct step step[STEPS_MAX];
	size_t count;
};

static void add_step(struct steps *steps, int32_t frame, uint64_t pc, unsigned cost)
{
	if (frame >= 0 && steps->count < STEPS_MAX)
		steps->step[steps->count++] = (struct step){ { .frame = frame, .pc = pc }, cost, 0 };
}

/* The last step that was added uses the checks before this one. */
static void use_checks(struct steps *steps, size_t count_before, uint32_t checks)
{
	if (steps->count > count_before)
		steps->step[steps->count - 1].checks = checks;
}

static uint64_t jump(uint64_t pc, uint32_t instruction)
{
	return pc + BYTECODE_SIZE +
	       (uint64_t)((int64_t)bytecode_d(instruction) - BCBIAS_J) * BYTECODE_SIZE;
}

/* The instruction at a point; what a root trace replaced there is looked up. */
static bool instruction_at(const struct replay *replay, const struct path_point *point,
			   uint32_t *ret_instruction, enum bytecode_op *ret_op)
{
	const struct proto *proto = frame_at(replay, point->frame)->proto;
	uint32_t instruction;
	enum bytecode_op op;

	if (!proto || !proto_instruction(proto, point->pc, &instruction))
		return false;
	op = bytecode_op(replay->layout, (uint8_t)instruction);
	if (op == BC_JFORL || op == BC_JITERL || op == BC_JLOOP) {
		if (!traces_startins(replay->traces, bytecode_d(instruction), &instruction))
			return false;
		op = bytecode_op(replay->layout, (uint8_t)instruction);
	}
	*ret_instruction = instruction;
	*ret_op = op;
	return op != BC__MAX;
}

/* Both ways on from a branch that takes a snapshot of the way not taken. */
static bool branch(const struct replay *replay, const struct path_point *point,
		   uint64_t ret_pcs[static 2])
{
	uint32_t instruction;
	enum bytecode_op op;

	if (!instruction_at(replay, point, &instruction, &op))
		return false;
	if (op <= BC_ISNEP) {
		struct path_point next = { .frame = point->frame, .pc = point->pc + BYTECODE_SIZE };

		if (!instruction_at(replay, &next, &instruction, &op) || op != BC_JMP)
			return false;
		ret_pcs[0] = next.pc + BYTECODE_SIZE;
		ret_pcs[1] = jump(next.pc, instruction);
		return true;
	}
	if (op == BC_FORI || op == BC_JFORI || op == BC_FORL || op == BC_IFORL) {
		ret_pcs[0] = point->pc + BYTECODE_SIZE;
		ret_pcs[1] = jump(point->pc, instruction);
		return true;
	}
	return false;
}

/* Enter a Lua function; a tail call takes its caller's place. */
static void enter(struct replay *replay, struct steps *steps, const struct path_point *point,
		  uint32_t instruction, bool is_tail_call, const struct proto *callee,
		  uint64_t function, unsigned cost)
{
	struct path_frame frame = *frame_at(replay, point->frame);
	unsigned base = frame.base_slot;

	if (!is_tail_call) {
		frame.up = point->frame;
		frame.call_pc = point->pc;
		frame.by_continuation = false;
		if (base)
			base += bytecode_a(instruction) + frame_slots(replay->layout->gc64);
		/* A vararg function's own slots begin behind its arguments. */
		if (callee->flags & PROTO_VARARG || base >= TRACE_SLOTS)
			base = 0;
	}
	frame.proto = callee;
	frame.function = function;
	frame.base_slot = (uint8_t)base;
	add_step(steps, add_frame(replay, &frame), callee->bc, cost);
}

/* The goal's frame that was called from here, or -1. */
static int32_t goal_callee(const struct replay *replay, const struct path_point *point)
{
	int32_t at = replay->goal.exists && !replay->goal.any_frame ? replay->goal.point.frame : -1;

	while (at >= 0) {
		const struct path_frame *frame = frame_at(replay, at);

		if (frame->up >= 0 && frame->call_pc == point->pc &&
		    is_same_frame(replay, frame->up, point->frame))
			return at;
		at = frame->up;
	}
	return -1;
}

/* Into the function that the goal says was called from here: through pcall's frame, if that is one. */
static void enter_goal(const struct replay *replay, struct steps *steps, int32_t callee)
{
	int32_t at = replay->goal.point.frame;

	if (frame_at(replay, callee)->proto) {
		add_step(steps, callee, frame_at(replay, callee)->proto->bc, 0);
		return;
	}
	while (at >= 0 && frame_at(replay, at)->up != callee)
		at = frame_at(replay, at)->up;
	if (at >= 0 && frame_at(replay, at)->proto)
		add_step(steps, at, frame_at(replay, at)->proto->bc, 0);
}

static void leave(struct replay *replay, struct steps *steps, const struct path_point *point)
{
	const struct path_frame *frame = frame_at(replay, point->frame);

	if (frame->up >= 0) {
		struct path_point caller = { .frame = frame->up, .pc = frame->call_pc };
		uint64_t pcs[2];

		while (!frame_at(replay, caller.frame)->proto) {
			caller.pc = frame_at(replay, caller.frame)->call_pc;
			caller.frame = frame_at(replay, caller.frame)->up;
			if (caller.frame < 0)
				return;
		}
		if (frame->by_continuation && branch(replay, &caller, pcs)) {
			add_step(steps, caller.frame, pcs[0], 0);
			add_step(steps, caller.frame, pcs[1], 0);
			return;
		}
		add_step(steps, caller.frame, caller.pc + BYTECODE_SIZE, 0);
		return;
	}
	/* Below the start frame: IR_RETF says where it returned to. */
	for (uint32_t ref = replay->ref; ref < replay->end_ref; ref++) {
		struct trace_instruction ins;
		struct path_frame lower = { .up = -1 };
		uint64_t pc;

		if (!trace_instruction(replay->trace, replay->layout, ref, &ins) ||
		    ins.op != IR_RETF ||
		    !trace_constant(replay->trace, replay->layout, ins.op2, &pc))
			continue;
		lower.proto = lua_objects_proto_of_pc(replay->objects, pc);
		lower.base_slot = (uint8_t)(1 + (replay->layout->gc64 ? 1 : 0));
		if (lower.proto)
			add_step(steps, add_frame(replay, &lower), pc, 0);
	}
}

/* Recursion is never guessed. */
static bool is_running(const struct replay *replay, int32_t frame, const struct proto *proto)
{
	for (; frame >= 0; frame = frame_at(replay, frame)->up)
		if (frame_at(replay, frame)->proto == proto)
			return true;
	return false;
}

/* The next check of a Lua function, those of builtins left out; end_check if there is none. */
static uint32_t next_check(const struct replay *replay)
{
	uint32_t check = replay->now.checks;

	while (check < replay->end_check && !replay->checks[check].callee)
		check++;
	return check;
}

/* How many of a Lua function are left. */
static unsigned unused_checks(const struct replay *replay)
{
	unsigned count = 0;

	for (uint32_t i = replay->now.checks; i < replay->end_check; i++)
		count += replay->checks[i].callee != NULL;
	return count;
}

/* The closure that runs in a frame: if that is not known, the only one of its prototype among the trace's constants. */
static uint64_t function_of(const struct replay *replay, const struct path_frame *frame)
{
	uint64_t found = 0;

	if (frame->function)
		return frame->function;
	for (size_t i = 0; i < replay->function_count; i++) {
		if (replay->functions[i]->proto != frame->proto)
			continue;
		if (found)
			return 0;
		found = replay->functions[i]->address;
	}
	return found;
}

/* The upvalue that a slot was last set to on the path, as a function; NULL if it is none, or was set otherwise. */
static const struct function_object *upvalue_in_slot(const struct replay *replay,
						     const struct path_point *point, unsigned slot)
{
	for (uint32_t i = replay->now.count; i-- > 0;) {
		const struct path_point *before = &replay->now.points[i];
		uint32_t instruction;
		enum bytecode_op op;

		if (before->frame != point->frame || !instruction_at(replay, before, &instruction, &op) ||
		    bytecode_mode_a(replay->layout, (uint8_t)instruction) != BCMdst ||
		    bytecode_a(instruction) != slot)
			continue;
		return op == BC_UGET ? lua_objects_upvalue(replay->objects,
							   function_of(replay, frame_at(replay, point->frame)),
							   bytecode_d(instruction)) : NULL;
	}
	return NULL;
}

static void call(struct replay *replay, struct steps *steps, const struct path_point *point,
		 uint32_t instruction, bool is_tail_call)
{
	int32_t callee = is_tail_call ? -1 : goal_callee(replay, point);
	uint32_t check = next_check(replay);
	const struct proto *checked = check < replay->end_check ? replay->checks[check].callee : NULL;
	const struct function_object *upvalue = upvalue_in_slot(replay, point, bytecode_a(instruction));
	size_t count = steps->count;
	unsigned cost = 0;

	if (callee >= 0) {
		enter_goal(replay, steps, callee);
		if (checked && frame_at(replay, callee)->proto == checked)
			use_checks(steps, count, check + 1);
		cost = COST_UNEXPECTED_CALL;
	}
	if (checked && !(callee >= 0 && frame_at(replay, callee)->proto == checked)) {
		count = steps->count;
		enter(replay, steps, point, instruction, is_tail_call, checked, 0,
		      cost + (is_running(replay, point->frame, checked) ? COST_GUESSED_CALL : 0));
		use_checks(steps, count, check + 1);
	}
	if (upvalue && upvalue->proto && callee < 0 && upvalue->proto != checked) {
		enter(replay, steps, point, instruction, is_tail_call, upvalue->proto,
		      upvalue->address, cost);
		cost = COST_UNEXPECTED_CALL;
	}
	for (size_t i = 0; i < replay->call_count; i++)
		if (replay->calls[i].pc == point->pc) {
			if (replay->calls[i].callee != checked &&
			    !(upvalue && replay->calls[i].callee == upvalue->proto))
				enter(replay, steps, point, instruction, is_tail_call,
				      replay->calls[i].callee, 0, cost);
			cost = COST_UNEXPECTED_CALL;
		}
	if (is_tail_call)
		leave(replay, steps, point);
	else
		add_step(steps, point->frame, point->pc + BYTECODE_SIZE,
			 cost + (replay->has_builtin ? 0 : COST_GUESSED_CALL));
	/*
	 * Nothing is guessed where it is known what is called, nor where there
	 * is a choice: a wrong guess would be a stack that cannot be.
	 */
	if (cost == 0 && !checked && !upvalue && replay->callee_count == 1 &&
	    !is_running(replay, point->frame, replay->callees[0]))
		enter(replay, steps, point, instruction, is_tail_call,
		      replay->callees[0], 0, COST_GUESSED_CALL);
}

/* What a slot holds, as far as it decides a branch. */
enum truth { TRUTH_UNKNOWN, TRUTH_FALSE, TRUTH_TRUE };

enum { PRI_TRUE = 2 };	/* operand of KPRI: nil, false, true */

/* Of an instruction that sets its A. */
static enum truth truth_set(enum bytecode_op op, uint32_t instruction)
{
	switch ((int)op) {
	case BC_KPRI:
		return bytecode_d(instruction) == PRI_TRUE ? TRUTH_TRUE : TRUTH_FALSE;
	case BC_KSTR: case BC_KCDATA: case BC_KSHORT: case BC_KNUM:
	case BC_FNEW: case BC_TNEW: case BC_TDUP:
		return TRUTH_TRUE;
	default:
		return TRUTH_UNKNOWN;
	}
}

/* What does this slot hold where the path has come to? Constants only, also those that a call has returned. */
static enum truth truth_of(const struct replay *replay, int32_t frame, unsigned slot)
{
	const uint32_t now = replay->now.count - 1;
	bool is_result = false;

	for (uint32_t i = now; i-- > 0;) {
		const struct path_point *point = &replay->now.points[i];
		uint32_t instruction;
		enum bytecode_op op;

		if (!instruction_at(replay, point, &instruction, &op))
			return TRUTH_UNKNOWN;
		if (point->frame != frame) {
			/* The callee's last instruction: the first result is in the slot of the function. */
			if (is_result || i + 1 != now ||
			    frame_at(replay, point->frame)->up != frame)
				return TRUTH_UNKNOWN;
			if (op == BC_RET0)
				return TRUTH_FALSE;
			if (op != BC_RET1)
				return TRUTH_UNKNOWN;
			is_result = true;
			frame = point->frame;
			slot = bytecode_a(instruction);
			continue;
		}
		if (bytecode_mode_a(replay->layout, (uint8_t)instruction) == BCMdst &&
		    bytecode_a(instruction) == slot)
			return truth_set(op, instruction);
		if (bytecode_mode_a(replay->layout, (uint8_t)instruction) == BCMbase &&
		    bytecode_a(instruction) <= slot)
			return TRUTH_UNKNOWN;
	}
	return TRUTH_UNKNOWN;
}

/* A test is followed by the jump that it decides on. */
static void test(struct replay *replay, struct steps *steps, const struct path_point *point,
		 enum bytecode_op op, uint32_t instruction)
{
	enum truth truth = truth_of(replay, point->frame, bytecode_d(instruction));
	enum truth jumps_if = op == BC_IST || op == BC_ISTC ? TRUTH_TRUE : TRUTH_FALSE;

	if (truth == TRUTH_UNKNOWN || truth != jumps_if)
		add_step(steps, point->frame, point->pc + 2 * BYTECODE_SIZE, 0);
	if (truth == TRUTH_UNKNOWN || truth == jumps_if)
		add_step(steps, point->frame, point->pc + BYTECODE_SIZE, 0);
}

/* Where the recorder may have gone from here. */
static void find_steps(struct replay *replay, const struct path_point *point, struct steps *steps)
{
	uint64_t next = point->pc + BYTECODE_SIZE, pcs[2];
	uint32_t instruction;
	enum bytecode_op op;
	int32_t callee;

	steps->count = 0;
	if (!instruction_at(replay, point, &instruction, &op))
		return;
	if (branch(replay, point, pcs)) {
		add_step(steps, point->frame, pcs[0], COST_COMPARISON);
		add_step(steps, point->frame, pcs[1], COST_COMPARISON);
		return;
	}
	switch ((int)op) {
	case BC_ISTC: case BC_ISFC: case BC_IST: case BC_ISF:
		test(replay, steps, point, op, instruction);
		return;
	case BC_JMP: case BC_UCLO: case BC_ISNEXT:
		add_step(steps, point->frame, jump(point->pc, instruction), 0);
		return;
	case BC_ITERL: case BC_IITERL:
		add_step(steps, point->frame, jump(point->pc, instruction), 0);
		add_step(steps, point->frame, next, 0);
		return;
	case BC_CALLMT: case BC_CALLT:
		call(replay, steps, point, instruction, true);
		return;
	case BC_CALLM: case BC_CALL: case BC_ITERC: case BC_ITERN:
		call(replay, steps, point, instruction, false);
		return;
	case BC_RETM: case BC_RET: case BC_RET0: case BC_RET1:
		leave(replay, steps, point);
		return;
	default:
		break;
	}
	/* A metamethod is entered only if the goal shows it. */
	callee = goal_callee(replay, point);
	if (callee >= 0)
		enter_goal(replay, steps, callee);
	add_step(steps, point->frame, next, 0);
}

/*---- Search ----*/

static bool is_goal(const struct replay *replay, const struct path_point *point, bool *ret_at_branch)
{
	const struct goal *goal = &replay->goal;
	uint64_t pcs[2];

	if (!goal->any_frame && !is_same_frame(replay, point->frame, goal->point.frame))
		return false;
	if (point->pc == goal->point.pc) {
		*ret_at_branch = false;
		return true;
	}
	if (goal->any_frame || !branch(replay, point, pcs) ||
	    (pcs[0] != goal->point.pc && pcs[1] != goal->point.pc))
		return false;
	*ret_at_branch = true;
	return true;
}

static bool was_here(const struct replay *replay, const struct path_point *point)
{
	for (uint32_t i = 0; i < replay->now.count; i++)
		if (replay->now.points[i].pc == point->pc &&
		    is_same_frame(replay, replay->now.points[i].frame, point->frame))
			return true;
	return false;
}

/* As deep as its budget of instructions. NOLINTNEXTLINE(misc-no-recursion) */
static void search(struct replay *replay, const struct path_point *point, unsigned budget,
		   bool is_first)
{
	const uint32_t checks = replay->now.checks;
	struct steps steps;
	bool at_branch;

	if (++replay->visits > VISITS_MAX || replay->candidate_count == CANDIDATES_MAX ||
	    replay->now.count == LENGTH_MAX)
		return;
	if (!is_first && is_goal(replay, point, &at_branch)) {
		struct candidate *found;

		/* What costs less has been found with a smaller budget. */
		if (budget != unused_checks(replay) * COST_UNUSED_CHECK)
			return;
		found = &replay->candidates[replay->candidate_count++];
		*found = replay->now;
		found->at_branch = at_branch;
		found->cost = replay->budget;
		if (at_branch || replay->goal.is_end)
			found->points[found->count++] = *point;
		return;
	}
	if (was_here(replay, point))
		return;
	replay->now.points[replay->now.count++] = *point;
	find_steps(replay, point, &steps);
	for (size_t i = 0; i < steps.count; i++) {
		if (steps.step[i].cost > budget)
			continue;
		if (steps.step[i].checks)
			replay->now.checks = steps.step[i].checks;
		search(replay, &steps.step[i].point, budget - steps.step[i].cost, false);
		replay->now.checks = checks;
	}
	replay->now.count--;
}

/* A start is a point, or a branch of which one way is known. */
struct start {
	struct path_point point;
	bool at_branch;
	uint64_t not_taken;
};

static void search_from(struct replay *replay, const struct start *start, unsigned budget)
{
	uint64_t pcs[2];

	replay->visits = 0;
	replay->budget = budget;
	replay->now.count = 0;
	replay->now.checks = replay->first_check;
	if (!start->at_branch || !branch(replay, &start->point, pcs)) {
		bool at_branch;

		/* A snapshot may follow at once, by a branch at this very point. */
		if (replay->immediate)
			return;
		if (is_goal(replay, &start->point, &at_branch) && at_branch) {
			struct candidate *found = &replay->candidates[replay->candidate_count++];

			found->points[0] = start->point;
			found->count = 1;
			found->at_branch = true;
			found->cost = 0;
			replay->immediate = true;
			return;
		}
		search(replay, &start->point, budget, true);
		return;
	}
	replay->now.points[replay->now.count++] = start->point;
	for (unsigned i = 0; i < 2; i++)
		if (pcs[i] != start->not_taken || pcs[0] == pcs[1]) {
			struct path_point next = { .frame = start->point.frame, .pc = pcs[i] };

			search(replay, &next, budget, false);
		}
}

/* By rising cost. */
static void find_candidates(struct replay *replay, const struct start *start)
{
	replay->candidate_count = 0;
	replay->immediate = false;
	for (unsigned budget = 0; replay->goal.exists && budget <= COST_MAX &&
	     replay->candidate_count < CANDIDATES_MAX; budget++)
		search_from(replay, start, budget);
}

/*---- Segments ----*/

static bool add_points(struct trace_path *path, const struct path_point *points, size_t count)
{
	if (path->point_count + count > PATH_POINTS_MAX)
		return false;
	if (path->point_count + count > path->point_size) {
		size_t size = (path->point_count + count) * 2;
		struct path_point *larger = realloc(path->points, size * sizeof(*larger));

		if (!larger)
			return false;
		path->points = larger;
		path->point_size = size;
	}
	memcpy(path->points + path->point_count, points, count * sizeof(*points));
	path->point_count += count;
	return true;
}

/* Keep the candidate that explains the IR best, as the path of this segment. */
static bool keep_best(struct replay *replay, uint32_t number, const struct candidate **ret_best)
{
	struct trace_path *path = replay->path;
	struct path_segment *segment = &path->segments[number];
	const struct path_alignment alignment = {
		.trace = replay->trace,
		.layout = replay->layout,
		.frames = path->frames,
		.objects = replay->objects,
		.ref = segment->ref,
		.end_ref = segment->end_ref,
		.next_snapshot = number + 1,
	};
	size_t length = segment->end_ref - segment->ref;
	uint32_t *assigned = malloc((2 * length + 1) * sizeof(*assigned));
	const struct candidate *best = NULL;
	int32_t best_score = INT32_MIN;

	if (!assigned)
		return false;
	for (size_t i = 0; i < replay->candidate_count; i++) {
		const struct candidate *one = &replay->candidates[i];
		int32_t score = trace_align(&alignment, one->points, one->count, assigned + length);

		/* Of paths that explain as much, the likeliest and shortest. */
		if (score != INT32_MIN)
			score = score * FIT_WEIGHT - (int32_t)one->count -
				(int32_t)one->cost * COST_WEIGHT;
		if (score <= best_score)
			continue;
		best = one;
		best_score = score;
		memcpy(assigned, assigned + length, length * sizeof(*assigned));
	}
	if (best && add_points(path, best->points, best->count)) {
		segment->found = true;
		segment->last = segment->first + best->count - 1;
		for (size_t i = 0; i < length; i++)
			path->point_of[segment->ref - TRACE_REF_BASE + i] =
				segment->first + assigned[i];
	} else {
		best = NULL;
	}
	free(assigned);
	*ret_best = best;
	return best != NULL;
}

/* The path is not known: all that is, is where it begins. */
static bool keep_start(struct replay *replay, uint32_t number, const struct path_point *point)
{
	struct trace_path *path = replay->path;
	struct path_segment *segment = &path->segments[number];

	if (!add_points(path, point, 1))
		return false;
	segment->last = segment->first;
	for (uint32_t ref = segment->ref; ref < segment->end_ref; ref++)
		path->point_of[ref - TRACE_REF_BASE] = segment->first;
	return true;
}

static bool has_loop(const struct replay *replay)
{
	struct trace_instruction ins;

	for (uint32_t ref = TRACE_REF_BASE; ref < trace_nins(replay->trace, replay->layout); ref++)
		if (trace_instruction(replay->trace, replay->layout, ref, &ins) && ins.op == IR_LOOP)
			return true;
	return false;
}

/* Where the last segment leads: a loop back to its start, all other traces nowhere. */
static void set_last_goal(struct replay *replay)
{
	bool in_builtin;

	replay->goal.exists = has_loop(replay) &&
			      point_of_snapshot(replay, 0, &replay->goal.point, &in_builtin);
	replay->goal.any_frame = true;
}

/*
 * The tail of a trace that links to another stores what the stack lacks. It
 * belongs to what was executed last, unless that was a call or return.
 */
static struct path_point tail_point(const struct trace_path *path, uint32_t number,
				    const struct path_point *start)
{
	const struct path_segment *before = &path->segments[number - 1];
	struct path_point last = path->points[before->last];

	if (!before->found || path->frames[last.frame].up != path->frames[start->frame].up ||
	    path->frames[last.frame].proto != path->frames[start->frame].proto)
		return *start;
	last.frame = start->frame;
	return last;
}

/* The calls of a path: they are likely to be the same when it comes there again. */
static void note_entered(struct replay *replay, const struct candidate *best)
{
	for (uint32_t i = 1; i < best->count; i++) {
		const struct path_frame *frame = frame_at(replay, best->points[i].frame);

		if (frame->up >= 0 && frame->up == best->points[i - 1].frame && frame->proto &&
		    best->points[i].pc == frame->proto->bc)
			note_call(replay, frame->call_pc, frame->proto);
	}
}

static bool returns(const struct replay *replay, const struct path_point *point)
{
	uint32_t instruction;
	enum bytecode_op op;

	return instruction_at(replay, point, &instruction, &op) && op >= BC_RETM && op <= BC_RET1;
}

/* Is this a check of what is called? Then ret_callee is its prototype, NULL for a builtin. */
static bool is_check(const struct replay *replay, const struct trace_instruction *ins,
		     const struct proto **ret_callee)
{
	const struct function_object *function;
	struct trace_instruction operand;
	uint64_t value;

	if (ins->op != IR_EQ || !ins->guard || ins->op2 >= TRACE_REF_BIAS ||
	    !trace_constant(replay->trace, replay->layout, ins->op2, &value))
		return false;
	/* The start frame's own function: that is specialised to for its upvalues (rec_upvalue()). */
	if (trace_instruction(replay->trace, replay->layout, ins->op1, &operand) &&
	    operand.op == IR_SLOAD && operand.op1 == 0)
		return false;
	if (!trace_instruction(replay->trace, replay->layout, ins->op2, &operand))
		return false;
	if (operand.op == IR_KGC && operand.type == IRT_FUNC) {
		function = lua_objects_function(replay->objects, value);
		*ret_callee = function ? function->proto : NULL;
		return function != NULL;
	}
	/* Of functions with many closures, GCfunc.pc is checked. */
	if (operand.op != IR_KPTR && operand.op != IR_KKPTR)
		return false;
	*ret_callee = lua_objects_proto_of_pc(replay->objects, value);
	return *ret_callee && (*ret_callee)->bc == value;
}

static void find_checks(struct replay *replay)
{
	uint32_t nins = trace_nins(replay->trace, replay->layout);

	for (uint32_t ref = TRACE_REF_BASE; ref < nins && replay->check_count < CHECKS_MAX; ref++) {
		struct trace_instruction ins;
		const struct proto *callee;

		if (trace_instruction(replay->trace, replay->layout, ref, &ins) &&
		    is_check(replay, &ins, &callee))
			replay->checks[replay->check_count++] = (struct check){ ref, callee };
	}
}

/* Those of a segment. */
static void set_checks(struct replay *replay)
{
	uint32_t check = 0;

	while (check < replay->check_count && replay->checks[check].ref < replay->ref)
		check++;
	replay->first_check = check;
	while (check < replay->check_count && replay->checks[check].ref < replay->end_ref)
		check++;
	replay->end_check = check;
}

static bool replay_segment(struct replay *replay, uint32_t number, struct start *start)
{
	struct trace_path *path = replay->path;
	struct path_segment *segment = &path->segments[number];
	const struct candidate *best;
	bool in_builtin = false;

	segment->first = (uint32_t)path->point_count;
	replay->ref = segment->ref;
	replay->end_ref = segment->end_ref;
	set_checks(replay);
	replay->goal.any_frame = false;
	if (number + 1 < path->segment_count)
		replay->goal.exists = point_of_snapshot(replay, number + 1, &replay->goal.point,
							&in_builtin);
	else
		set_last_goal(replay);
	replay->goal.is_end = replay->goal.exists && number + 2 == path->segment_count &&
			      (in_builtin || returns(replay, &replay->goal.point));
	find_candidates(replay, start);
	/* It looked like the way that a branch has not taken, but has been taken without a guard. */
	if (!replay->candidate_count && start->at_branch) {
		start->at_branch = false;
		start->point.pc = start->not_taken;
		find_candidates(replay, start);
	}
	if (replay->candidate_count && keep_best(replay, number, &best)) {
		note_entered(replay, best);
		*start = (struct start){
			.point = best->at_branch ? best->points[best->count - 1] : replay->goal.point,
			.at_branch = best->at_branch,
			.not_taken = replay->goal.point.pc,
		};
		return true;
	}
	if (!replay->goal.exists && number > 0)
		start->point = tail_point(path, number, &start->point);
	if (!keep_start(replay, number, &start->point))
		return false;
	*start = (struct start){ .point = replay->goal.point };
	return replay->goal.exists || number + 1 == path->segment_count;
}

/*---- The whole trace ----*/

/* Functions that the trace calls are among its constants (lj_record.c, rec_call_specialize()). */
static void find_callees(struct replay *replay)
{
	uint64_t constants[CONSTANTS_MAX];
	size_t count = trace_constants(replay->trace, replay->layout, TRACE_FUNCTIONS, constants,
				       CONSTANTS_MAX);

	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < count; i++) {
			const struct function_object *function = pass ? NULL :
				lua_objects_function(replay->objects, constants[i]);
			const struct proto *proto = pass
				? lua_objects_proto(replay->objects, constants[i])
				: function ? function->proto : NULL;
			bool is_known = false;

			if (function && function->ffid != FF_LUA)
				replay->has_builtin = true;
			else if (function)
				replay->functions[replay->function_count++] = function;
			for (size_t k = 0; k < replay->callee_count; k++)
				is_known |= replay->callees[k] == proto;
			if (proto && !is_known && replay->callee_count < CONSTANTS_MAX)
				replay->callees[replay->callee_count++] = proto;
		}
		count = trace_constants(replay->trace, replay->layout, TRACE_PROTOS, constants,
					CONSTANTS_MAX);
	}
}

static bool make_segments(struct replay *replay)
{
	struct trace_path *path = replay->path;
	uint32_t nins = trace_nins(replay->trace, replay->layout);
	uint32_t ref = TRACE_REF_BASE;

	path->segment_count = trace_snapshot_count(replay->trace, replay->layout);
	if (path->segment_count == 0 || nins <= TRACE_REF_BASE)
		return false;
	path->instruction_count = nins - TRACE_REF_BASE;
	path->segments = calloc(path->segment_count, sizeof(*path->segments));
	path->point_of = calloc(path->instruction_count, sizeof(*path->point_of));
	if (!path->segments || !path->point_of)
		return false;
	for (uint32_t i = 0; i < path->segment_count; i++) {
		struct trace_snapshot next = { .ref = nins };

		if (i + 1 < path->segment_count &&
		    !trace_snapshot(replay->trace, replay->layout, i + 1, &next))
			return false;
		if (next.ref < ref || next.ref > nins)
			return false;
		path->segments[i].ref = ref;
		path->segments[i].end_ref = ref = next.ref;
	}
	return true;
}

/* IR_LOOP stands for the jump back, which is at the end of the path before it. */
static void assign_loop(struct replay *replay)
{
	struct trace_path *path = replay->path;

	for (size_t i = 1; i < path->segment_count; i++) {
		const struct path_segment *segment = &path->segments[i];
		struct trace_instruction ins;

		for (uint32_t ref = segment->ref; ref < segment->end_ref; ref++)
			if (trace_instruction(replay->trace, replay->layout, ref, &ins) &&
			    ins.op == IR_LOOP)
				path->point_of[ref - TRACE_REF_BASE] = path->segments[i - 1].last;
	}
}

/*
 * IR_RETF lowers the base for all that follows. Of a snapshot it is known how
 * many of them came before; between two, it is the start frame's return.
 */
static void count_lowered(struct replay *replay)
{
	struct trace_path *path = replay->path;
	uint32_t ref = TRACE_REF_BASE, lowered = 0;

	for (size_t i = 0; i < path->segment_count; i++) {
		const struct path_segment *segment = &path->segments[i];
		struct trace_instruction ins;
		uint32_t now;

		for (; ref < segment->ref; ref++)
			if (trace_instruction(replay->trace, replay->layout, ref, &ins) &&
			    ins.op == IR_RETF)
				lowered++;
		now = lowered;
		for (uint32_t at = segment->first; at <= segment->last; at++) {
			struct path_point *point = &path->points[at];

			point->lowered = now;
			if (segment->found && path->frames[point->frame].up < 0 &&
			    returns(replay, point))
				now++;
		}
	}
}

bool trace_path_replay(struct trace_path *path, const struct traces *traces,
		       const struct trace *trace, const struct layout *layout,
		       struct lua_objects *objects)
{
	struct replay replay = {
		.path = path,
		.traces = traces,
		.trace = trace,
		.layout = layout,
		.objects = objects,
	};
	struct start start = { 0 };
	bool in_builtin, done;

	*path = (struct trace_path){ 0 };
	replay.candidates = malloc(CANDIDATES_MAX * sizeof(*replay.candidates));
	done = replay.candidates && make_segments(&replay) &&
	       point_of_snapshot(&replay, 0, &start.point, &in_builtin);
	find_callees(&replay);
	find_checks(&replay);
	note_all_calls(&replay);
	for (uint32_t i = 0; done && i < path->segment_count; i++)
		done = replay_segment(&replay, i, &start);
	if (done) {
		assign_loop(&replay);
		count_lowered(&replay);
	}
	free(replay.candidates);
	if (!done)
		trace_path_clear(path);
	return done;
}

void trace_path_clear(struct trace_path *path)
{
	free(path->frames);
	free(path->points);
	free(path->segments);
	free(path->point_of);
	*path = (struct trace_path){ 0 };
}
