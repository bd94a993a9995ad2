/* SPDX-License-Identifier: MIT */
#include "unwind/jit/path_steps.h"

#include "luajit-layouts/bytecode.h"
#include "unwind/jit/trace_key.h"
#include "unwind/lua/luajit.h"

enum { ITERATOR_SLOTS = 3 }; /* function, state and control variable, below A of BC_ITERC */

struct stepper {
	const struct path_context *context;
	const struct path_gap *gap;
	const struct path_way *way;
	struct path_point point; /* the last point of the way */
	uint32_t instruction;    /* the bytecode there */
	struct path_steps *steps;
};

static const struct path_frame *frame_at(const struct path_context *context, int32_t index)
{
	return &context->frames->frame[index];
}

static void add_step(struct stepper *stepper, int32_t frame, uint64_t pc, unsigned cost)
{
	struct path_steps *steps = stepper->steps;

	if (frame >= 0 && steps->count < PATH_STEPS_MAX)
		steps->step[steps->count++] = (struct path_step){ { .frame = frame, .pc = pc }, cost, 0 };
}

/* Let the last added step use the checks before this one. */
static void use_checks(struct stepper *stepper, size_t count_before, uint32_t checks)
{
	struct path_steps *steps = stepper->steps;

	if (steps->count > count_before)
		steps->step[steps->count - 1].checks = checks;
}

/*---- Bytecode ----*/

static uint64_t jump(uint64_t pc, uint32_t instruction)
{
	return pc + BYTECODE_SIZE + (uint64_t)(int64_t)bytecode_j(instruction) * BYTECODE_SIZE;
}

/* The bytecode at a point: if a root trace replaced it, the original one. */
static bool instruction_at(const struct path_context *context, const struct path_point *point,
			   uint32_t *ret_instruction, enum bytecode_op *ret_op)
{
	const struct proto *proto = frame_at(context, point->frame)->proto;
	uint32_t instruction;
	enum bytecode_op op;

	if (!proto || !proto_instruction(proto, point->pc, &instruction))
		return false;
	op = bytecode_op(context->layout, (uint8_t)instruction);
	if (op == BC_JFORL || op == BC_JITERL || op == BC_JLOOP) {
		const struct trace *trace = trace_numbered(context->numbers, bytecode_d(instruction));

		if (!trace)
			return false;
		instruction = trace->startins;
		op = bytecode_op(context->layout, (uint8_t)instruction);
	}
	*ret_instruction = instruction;
	*ret_op = op;
	return op != BC__MAX;
}

bool path_branch(const struct path_context *context, const struct path_point *point,
		 uint64_t ret_pcs[static 2])
{
	uint32_t instruction;
	enum bytecode_op op;

	if (!instruction_at(context, point, &instruction, &op))
		return false;
	if (op <= BC_ISNEP) {
		struct path_point next = { .frame = point->frame, .pc = point->pc + BYTECODE_SIZE };

		if (!instruction_at(context, &next, &instruction, &op) || op != BC_JMP)
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

bool path_branch_may_guard(const struct path_context *context, const struct path_point *point, enum ir_op op)
{
	uint32_t instruction;
	enum bytecode_op branch;

	/* Loops compare by order only (lj_record.c, rec_for_iter()). */
	return instruction_at(context, point, &instruction, &branch) &&
	       op <= (branch <= BC_ISNEP ? IR_NE : IR_UGT);
}

bool path_returns(const struct path_context *context, const struct path_point *point)
{
	uint32_t instruction;
	enum bytecode_op op;

	return instruction_at(context, point, &instruction, &op) && op >= BC_RETM && op <= BC_RET1;
}

/*---- Calls and returns ----*/

/* Enter a Lua function. A tail call replaces its caller's frame. */
static void enter(struct stepper *stepper, bool is_tail_call, const struct proto *callee, uint64_t function,
		  unsigned cost)
{
	const struct path_context *context = stepper->context;
	struct path_frame frame = *frame_at(context, stepper->point.frame);
	unsigned base = frame.base_slot;

	if (!is_tail_call) {
		frame.up = stepper->point.frame;
		frame.call_pc = stepper->point.pc;
		frame.by_continuation = false;
		if (base)
			base += bytecode_a(stepper->instruction) + frame_slots(context->layout->gc64);
	}
	/* A vararg function's own slots begin after its arguments. */
	if (callee->flags & PROTO_VARARG || base >= TRACE_SLOTS)
		base = 0;
	frame.proto = callee;
	frame.function = function;
	frame.base_slot = (uint8_t)base;
	add_step(stepper, path_frames_add(context->frames, &frame), callee->bc, cost);
}

/* The goal's frame that was called from here, or -1. */
static int32_t goal_callee(const struct stepper *stepper)
{
	const struct path_context *context = stepper->context;
	const struct path_goal *goal = &stepper->gap->goal;
	int32_t at = goal->exists && !goal->any_frame ? goal->point.frame : -1;

	while (at >= 0) {
		const struct path_frame *frame = frame_at(context, at);

		if (frame->up >= 0 && frame->call_pc == stepper->point.pc &&
		    path_frames_are_same(context->frames, frame->up, stepper->point.frame))
			return at;
		at = frame->up;
	}
	return -1;
}

/*
 * Enter the function that the goal shows as called here, and use its check. If that is
 * pcall or the like, enter its callee.
 */
static void enter_goal(struct stepper *stepper, int32_t callee)
{
	const struct path_context *context = stepper->context;
	const struct trace_check *checks = context->calls->checks;
	const size_t count = stepper->steps->count;
	uint32_t check = stepper->way->checks;
	int32_t at = stepper->gap->goal.point.frame;
	const struct proto *proto;

	if (frame_at(context, callee)->proto)
		at = callee;
	else
		while (at >= 0 && frame_at(context, at)->up != callee)
			at = frame_at(context, at)->up;
	if (at < 0 || !frame_at(context, at)->proto)
		return;
	proto = frame_at(context, at)->proto;
	add_step(stepper, at, proto->bc, 0);
	while (check < stepper->gap->end_check && !checks[check].callee)
		check++;
	if (check < stepper->gap->end_check && checks[check].callee == proto)
		use_checks(stepper, count, check + 1);
}

/* Return below the start frame, to the pc in IR_RETF. */
static void leave_start(struct stepper *stepper)
{
	const struct path_context *context = stepper->context;

	for (uint32_t ref = stepper->gap->ref; ref < stepper->gap->end_ref; ref++) {
		struct trace_instruction ins;
		struct path_frame lower = { .up = -1 };
		uint64_t pc;

		if (!trace_instruction(context->trace, context->layout, ref, &ins) || ins.op != IR_RETF ||
		    !trace_constant(context->trace, context->layout, ins.op2, &pc))
			continue;
		lower.proto = lua_objects_proto_of_pc(context->objects, pc);
		lower.base_slot = (uint8_t)(1 + (context->layout->gc64 ? 1 : 0));
		if (lower.proto)
			add_step(stepper, path_frames_add(context->frames, &lower), pc, 0);
	}
}

static void leave(struct stepper *stepper)
{
	const struct path_context *context = stepper->context;
	const struct path_frame *frame = frame_at(context, stepper->point.frame);
	struct path_point caller = { .frame = frame->up, .pc = frame->call_pc };
	uint64_t pcs[2];

	if (frame->up < 0) {
		leave_start(stepper);
		return;
	}
	while (!frame_at(context, caller.frame)->proto) {
		caller.pc = frame_at(context, caller.frame)->call_pc;
		caller.frame = frame_at(context, caller.frame)->up;
		if (caller.frame < 0)
			return;
	}
	if (frame->by_continuation && path_branch(context, &caller, pcs)) {
		add_step(stepper, caller.frame, pcs[0], 0);
		add_step(stepper, caller.frame, pcs[1], 0);
		return;
	}
	add_step(stepper, caller.frame, caller.pc + BYTECODE_SIZE, 0);
}

/*
 * The closure of a frame. If unknown: the only closure of its prototype among the
 * trace's constants. 0 if there is none, or several, if a check lets all of them pass, or if not all
 * constants are known.
 */
static uint64_t function_of(const struct trace_calls *calls, const struct path_frame *frame)
{
	uint64_t found = 0;

	if (frame->function)
		return frame->function;
	if (calls->is_incomplete)
		return 0;
	for (uint32_t i = 0; i < calls->check_count; i++)
		if (frame->proto && calls->checks[i].callee == frame->proto && !calls->checks[i].function)
			return 0;
	for (size_t i = 0; i < calls->function_count; i++) {
		if (calls->functions[i]->proto != frame->proto)
			continue;
		if (found)
			return 0;
		found = calls->functions[i]->address;
	}
	return found;
}

/* The bytecode that last set a slot. op is BC__MAX if there is none, or if a call did. */
struct setter {
	uint32_t instruction;
	enum bytecode_op op;
};

/* Of a slot of the frame at this point of the way. */
static struct setter setter_of(const struct stepper *stepper, uint32_t at, unsigned slot)
{
	const struct path_context *context = stepper->context;
	struct setter setter;

	for (uint32_t i = at; i-- > 0;) {
		const struct path_point *before = &stepper->way->points[i];
		enum bytecode_mode mode;

		if (before->frame != stepper->way->points[at].frame ||
		    !instruction_at(context, before, &setter.instruction, &setter.op))
			continue;
		mode = bytecode_mode_a(context->layout, (uint8_t)setter.instruction);
		if (mode == BCMbase && bytecode_a(setter.instruction) <= slot)
			break;
		if (mode == BCMdst && bytecode_a(setter.instruction) == slot)
			return setter;
	}
	return (struct setter){ .op = BC__MAX };
}

/*
 * Has a store before the gap given the upvalue its function, as far as is known? Those of one variable hold
 * the same one now. What the trace has stored, it need not read (lj_opt_mem.c, lj_opt_fwd_uload()).
 */
static bool is_stored_in(const struct stepper *stepper, const struct function_object *now,
			 uint64_t *ret_stored)
{
	const struct path_context *context = stepper->context;
	const struct trace_calls *calls = context->calls;

	for (size_t i = calls->store_count; i-- > 0;) {
		const struct trace_upvalue *to = &calls->stores[i].upvalue;

		if (to->ref < stepper->gap->ref &&
		    (!to->function ||
		     lua_objects_upvalue(context->objects, to->function, to->index) == now)) {
			*ret_stored = calls->stores[i].stored;
			return true;
		}
	}
	return false;
}

/*
 * The function in the upvalue that a setter read, if any; else NULL. The upvalue may have been set anew
 * since: what the trace cannot call was not there. ret_is_stored: the trace itself put it there.
 */
static const struct function_object *upvalue_of(const struct stepper *stepper, const struct setter *setter,
						bool *ret_is_stored)
{
	const struct path_context *context = stepper->context;
	const struct function_object *function;
	uint64_t stored;

	*ret_is_stored = false;
	if (setter->op != BC_UGET)
		return NULL;
	function = lua_objects_upvalue(context->objects,
				       function_of(context->calls, frame_at(context, stepper->point.frame)),
				       bytecode_d(setter->instruction));
	*ret_is_stored = is_stored_in(stepper, function, &stored);
	if (*ret_is_stored)
		return stored ? lua_objects_function(context->objects, stored) : NULL;
	if (function && !trace_calls_may_call_function(context->calls, function))
		return NULL;
	return function;
}

/* Where a called function was read from, as far as its setter tells. */
struct origin {
	enum trace_check_of of;
	uint64_t key;
};

static struct origin origin_of(const struct stepper *stepper, const struct setter *setter)
{
	const struct path_context *context = stepper->context;
	struct origin origin = { .of = CHECK_OF_UNKNOWN };

	if (setter->op == BC_UGET)
		origin.of = CHECK_OF_UPVALUE;
	else if (trace_key_of_bytecode(context->layout, frame_at(context, stepper->point.frame)->proto,
				       setter->op, setter->instruction, &origin.key))
		origin.of = CHECK_OF_TABLE;
	return origin;
}

/* Does a check read its function from there, as far as is known? */
static bool is_check_of(const struct trace_check *check, const struct origin *origin)
{
	if (check->of == CHECK_OF_UNKNOWN || origin->of == CHECK_OF_UNKNOWN)
		return true;
	return check->of == origin->of && (!check->key || check->key == origin->key);
}

/* The slot of the function that is called. BC_ITERC copies it. */
static unsigned called_slot(const struct stepper *stepper)
{
	const uint8_t number = (uint8_t)stepper->instruction;
	const unsigned slot = bytecode_a(stepper->instruction);

	return bytecode_op(stepper->context->layout, number) == BC_ITERC && slot >= ITERATOR_SLOTS
		       ? slot - ITERATOR_SLOTS
		       : slot;
}

/* Enter the Lua function of a check, unless the goal shows that; this uses the checks up to it. */
static void enter_checked(struct stepper *stepper, bool is_tail_call, uint32_t check, int32_t goal,
			  unsigned cost)
{
	const struct path_context *context = stepper->context;
	const struct proto *callee = context->calls->checks[check].callee;
	const uint64_t function = context->calls->checks[check].function;
	const size_t count = stepper->steps->count;

	if (goal >= 0 && frame_at(context, goal)->proto == callee)
		return;
	if (path_frames_is_running(context->frames, stepper->point.frame, callee))
		cost += COST_GUESSED_CALL;
	enter(stepper, is_tail_call, callee, function, cost);
	use_checks(stepper, count, check + 1);
}

/*
 * Does the trace read this upvalue of a function, which holds this now, as a constant? LuaJIT does so with
 * what is never set anew, and reads everything else from memory (lj_record.c, rec_upvalue()): once, even if
 * several functions have it (lj_opt_fold.c, cse_uref()). So it may be what another function reads that
 * holds the same.
 */
static bool is_constant(const struct stepper *stepper, uint64_t function, unsigned index,
			const struct function_object *now)
{
	const struct trace_calls *calls = stepper->context->calls;

	if (calls->upvalue_count == TRACE_UPVALUES_MAX || calls->store_count == TRACE_STORES_MAX)
		return false;
	for (size_t i = 0; i < calls->upvalue_count; i++) {
		const struct trace_upvalue *read = &calls->upvalues[i];
		/* What is no constant may be this function, too. */
		const bool may_be_own = !read->function || read->function == function;

		if (read->ref < stepper->gap->end_ref &&
		    (may_be_own ? read->index == index
				: lua_objects_upvalue(stepper->context->objects, read->function,
						      read->index) == now))
			return false;
	}
	return true;
}

/*
 * Enter the Lua function in an upvalue that the trace reads as a constant: the call is of no other. The trace
 * checks it only if its prototype has many closures. False if it is not so.
 */
static bool enter_constant(struct stepper *stepper, bool is_tail_call, const struct setter *setter,
			   const struct function_object *upvalue)
{
	const struct path_context *context = stepper->context;
	const struct trace_calls *calls = context->calls;
	const size_t count = stepper->steps->count;
	uint32_t check = stepper->way->checks;
	uint64_t function;

	if (!upvalue || !upvalue->proto)
		return false;
	function = function_of(calls, frame_at(context, stepper->point.frame));
	if (!function || !is_constant(stepper, function, bytecode_d(setter->instruction), upvalue))
		return false;
	enter(stepper, is_tail_call, upvalue->proto, upvalue->address, 0);
	while (check < stepper->gap->end_check && !calls->checks[check].callee)
		check++;
	if (check < stepper->gap->end_check && calls->checks[check].callee == upvalue->proto)
		use_checks(stepper, count, check + 1);
	return true;
}

/* Was a builtin read by this key? The trace checks that once, maybe before the gap. */
static bool is_builtin_key(const struct stepper *stepper, uint64_t key)
{
	const struct trace_check *checks = stepper->context->calls->checks;

	for (uint32_t i = 0; key && i < stepper->gap->end_check; i++)
		if (!checks[i].callee && checks[i].key == key)
			return true;
	return false;
}

/*
 * Enter the Lua function of the next check that reads it as the call does. The first check of all may be the
 * call's, too, as LuaJIT may read by another key or in another place: __call, __index, and what it has just
 * stored. That is less likely if it is known what the slot holds, or if there is a former one, and not so if
 * a builtin was read by the call's key: nor is it one then of which nobody knows where it was read. Returns
 * the likely function, or NULL.
 */
static const struct proto *enter_next_checked(struct stepper *stepper, bool is_tail_call,
					      const struct setter *setter, bool is_known, int32_t goal,
					      unsigned cost)
{
	const struct origin origin = origin_of(stepper, setter);
	const struct trace_check *checks = stepper->context->calls->checks;
	const uint32_t end = stepper->gap->end_check;
	const bool is_builtin = is_builtin_key(stepper, origin.key);
	uint32_t first = end, check = stepper->way->checks;
	unsigned skipped = 0;
	bool may_be_first;

	for (; check < end; check++) {
		if (!checks[check].callee)
			continue;
		if (first == end)
			first = check;
		if (is_check_of(&checks[check], &origin) &&
		    !(is_builtin && checks[check].of == CHECK_OF_UNKNOWN))
			break;
		skipped++;
	}
	may_be_first = check != first && !is_builtin;
	if (check == end && may_be_first && !is_known) {
		check = first;
		skipped = 0;
	}
	if (check < end)
		enter_checked(stepper, is_tail_call, check, goal, cost + (skipped * COST_UNUSED_CHECK));
	if (check != first && may_be_first)
		enter_checked(stepper, is_tail_call, first, goal, cost + COST_UNEXPECTED_CALL);
	return check < end ? checks[check].callee : NULL;
}

static void call(struct stepper *stepper, bool is_tail_call)
{
	const struct path_context *context = stepper->context;
	const struct trace_calls *calls = context->calls;
	const struct path_point *point = &stepper->point;
	const int32_t callee = is_tail_call ? -1 : goal_callee(stepper);
	const struct setter setter = setter_of(stepper, stepper->way->count - 1, called_slot(stepper));
	bool is_stored;
	const struct function_object *upvalue = upvalue_of(stepper, &setter, &is_stored);
	const struct proto *checked;
	unsigned cost = 0;

	if (callee < 0 && !is_stored && enter_constant(stepper, is_tail_call, &setter, upvalue))
		return;
	if (callee >= 0) {
		enter_goal(stepper, callee);
		cost = COST_UNEXPECTED_CALL;
	}
	checked = enter_next_checked(stepper, is_tail_call, &setter, upvalue != NULL, callee, cost);
	if (upvalue && upvalue->proto && callee < 0 && upvalue->proto != checked) {
		enter(stepper, is_tail_call, upvalue->proto, upvalue->address, cost);
		cost = COST_UNEXPECTED_CALL;
	}
	for (size_t i = 0; i < calls->call_count; i++) {
		const struct proto *known = calls->calls[i].callee;

		if (calls->calls[i].pc != point->pc || !trace_calls_may_call(calls, known))
			continue;
		if (known != checked && !(upvalue && known == upvalue->proto))
			enter(stepper, is_tail_call, known, 0, cost);
		cost = COST_UNEXPECTED_CALL;
	}
	if (is_tail_call)
		leave(stepper);
	else
		add_step(stepper, point->frame, point->pc + BYTECODE_SIZE,
			 cost + (calls->has_builtin ? 0 : COST_GUESSED_CALL));
	/*
	 * Guess only if the callee is unknown, there is just one candidate, and it does
	 * not run yet: a wrong guess would make an impossible stack.
	 */
	if (cost == 0 && !checked && !upvalue && calls->callee_count == 1 && !calls->is_incomplete &&
	    !path_frames_is_running(context->frames, point->frame, calls->callees[0]))
		enter(stepper, is_tail_call, calls->callees[0], 0, COST_GUESSED_CALL);
}

/*---- Tests ----*/

/* What is known of a slot's value. */
struct value {
	bool is_known;
	uint8_t type;    /* IRT_*; all numbers: IRT_NUM */
	uint64_t string; /* GCstr; 0 if unknown or none */
};

static struct value value_of_type(uint8_t type)
{
	return (struct value){ .is_known = true, .type = type == IRT_INT ? IRT_NUM : type };
}

/* The value that a bytecode of this function stores in its slot A, or has as its operand. */
static struct value constant_value(const struct layout *layout, const struct proto *proto,
				   enum bytecode_op op, uint32_t instruction)
{
	struct value value;

	switch ((int)op) {
	case BC_KPRI:
	case BC_ISEQP:
	case BC_ISNEP: return value_of_type((uint8_t)bytecode_d(instruction)); /* nil, false, true */
	case BC_KSTR:
	case BC_ISEQS:
	case BC_ISNES:
		value = value_of_type(IRT_STR);
		if (!proto_kgc(layout, proto, bytecode_d(instruction), &value.string))
			value.string = 0;
		return value;
	case BC_KSHORT:
	case BC_KNUM:
	case BC_ISEQN:
	case BC_ISNEN: return value_of_type(IRT_NUM);
	case BC_KCDATA: return value_of_type(IRT_CDATA);
	case BC_FNEW: return value_of_type(IRT_FUNC);
	case BC_TNEW:
	case BC_TDUP: return value_of_type(IRT_TAB);
	default: return (struct value){ 0 };
	}
}

static struct value value_of_reference(const struct path_context *context, uint32_t ref)
{
	struct trace_instruction ins;
	struct value value;

	if (!ref || !trace_instruction(context->trace, context->layout, ref, &ins))
		return (struct value){ 0 };
	value = value_of_type(ins.type);
	if (ins.type != IRT_STR || ref >= TRACE_REF_BIAS ||
	    !trace_constant(context->trace, context->layout, ref, &value.string))
		value.string = 0;
	return value;
}

/* A slot's value at the gap's start, by what its snapshot keeps or the trace loads there. */
static struct value value_at_start(const struct stepper *stepper, int32_t frame, unsigned slot)
{
	const struct path_context *context = stepper->context;
	const struct path_gap *gap = stepper->gap;
	unsigned base = frame_at(context, frame)->base_slot;
	uint32_t refs[TRACE_SLOTS];

	if (!base || base + slot >= TRACE_SLOTS ||
	    !trace_snapshot_refs(context->trace, context->layout, gap->snapshot, refs))
		return (struct value){ 0 };
	if (refs[base + slot] || gap->snapshot > 0)
		return value_of_reference(context, refs[base + slot]);
	for (uint32_t ref = gap->ref; ref < gap->end_ref; ref++) {
		struct trace_instruction ins;

		if (trace_instruction(context->trace, context->layout, ref, &ins) && ins.op == IR_SLOAD &&
		    ins.guard && ins.op1 == base + slot)
			return value_of_reference(context, ref);
	}
	return (struct value){ 0 };
}

/*
 * Does the call at this point of the way call the function itself, as far as is known? For another object,
 * its __call gets that as one more argument, before all others.
 */
static bool calls_itself(const struct stepper *stepper, uint32_t at, uint32_t instruction,
			 const struct proto *callee)
{
	const struct path_context *context = stepper->context;
	const struct path_frame *caller = frame_at(context, stepper->way->points[at].frame);
	const struct setter setter = setter_of(stepper, at, bytecode_a(instruction));
	const struct trace_calls *calls = context->calls;
	const struct function_object *upvalue;
	uint64_t key;

	if (setter.op == BC_UGET) {
		upvalue = lua_objects_upvalue(context->objects, function_of(calls, caller),
					      bytecode_d(setter.instruction));
		return upvalue && upvalue->proto == callee;
	}
	if (!trace_key_of_bytecode(context->layout, caller->proto, setter.op, setter.instruction, &key))
		return false;
	for (uint32_t i = 0; i < stepper->gap->end_check; i++)
		if (calls->checks[i].callee == callee && calls->checks[i].key == key)
			return true;
	return false;
}

/* Does this bytecode call the frame, or become it by a tail call? Then the operand of its arguments. */
static bool enters(const struct path_context *context, const struct path_point *caller, uint32_t instruction,
		   const struct path_frame *entered, unsigned *ret_operand)
{
	const struct path_frame *replaced = frame_at(context, caller->frame);

	switch ((int)bytecode_op(context->layout, (uint8_t)instruction)) {
	case BC_CALL:
		*ret_operand = bytecode_c(instruction);
		return entered->up == caller->frame && entered->call_pc == caller->pc;
	case BC_CALLT:
		*ret_operand = bytecode_d(instruction);
		return entered->up == replaced->up && entered->call_pc == replaced->call_pc;
	default: return false;
	}
}

/* The caller's slot of an argument of the frame that this point's bytecode entered. False for others. */
static bool argument_slot(const struct stepper *stepper, int32_t entered, uint32_t at, uint32_t instruction,
			  unsigned *ret_slot)
{
	const struct path_context *context = stepper->context;
	const struct path_frame *frame = frame_at(context, entered);
	const struct proto *callee = frame->proto;
	unsigned operand;

	if (frame->by_continuation ||
	    !enters(context, &stepper->way->points[at], instruction, frame, &operand) ||
	    (callee->flags & PROTO_VARARG && *ret_slot >= callee->numparams) || *ret_slot + 1 >= operand ||
	    !calls_itself(stepper, at, instruction, callee))
		return false;
	*ret_slot += bytecode_a(instruction) + frame_slots(context->layout->gc64);
	return true;
}

/* The slot of the result of the call that this point's return ends. False for others. */
static bool result_slot(const struct path_context *context, int32_t frame, const struct path_point *callee,
			unsigned *ret_slot)
{
	const struct path_frame *called = frame_at(context, callee->frame);
	const struct path_point caller = { .frame = frame, .pc = called->call_pc };
	uint32_t instruction;
	enum bytecode_op op;

	if (called->up != frame || called->by_continuation ||
	    !instruction_at(context, &caller, &instruction, &op) || (op != BC_CALL && op != BC_CALLM))
		return false;
	*ret_slot = bytecode_a(instruction);
	return true;
}

/*
 * May functions that are not on the way, such as metamethods, have set the frame's variables? The trace does
 * so without a store, but only after it has checked that the upvalue is one of them (lj_record.c,
 * rec_upvalue()).
 */
static bool may_be_set_unseen(const struct stepper *stepper, int32_t frame)
{
	const struct trace_calls *calls = stepper->context->calls;

	if (!(frame_at(stepper->context, frame)->proto->flags & PROTO_CHILD))
		return false;
	for (size_t i = 0; i < calls->upvalue_count; i++)
		if (calls->upvalues[i].ref < stepper->gap->end_ref)
			return true;
	return false;
}

/* A slot's value at the end of the way, as far as bytecodes that set it, and the gap's start, tell. */
static struct value value_of(const struct stepper *stepper, unsigned slot)
{
	const struct path_context *context = stepper->context;
	const struct value unknown = { 0 };
	const uint32_t now = stepper->way->count - 1;
	int32_t frame = stepper->point.frame;
	bool is_result = false;

	for (uint32_t i = now; i-- > 0;) {
		const struct path_point *point = &stepper->way->points[i];
		uint32_t instruction;
		enum bytecode_op op;
		unsigned result;

		if (!instruction_at(context, point, &instruction, &op))
			return unknown;
		if (point->frame != frame) {
			if (argument_slot(stepper, frame, i, instruction, &slot)) {
				frame = point->frame;
				continue;
			}
			/* The callee's last bytecode: its first result goes to the function's slot. */
			if (is_result || i + 1 != now || !result_slot(context, frame, point, &result) ||
			    result != slot)
				return unknown;
			if (op == BC_RET0)
				return value_of_type(IRT_NIL);
			if (op != BC_RET1)
				return unknown;
			is_result = true;
			frame = point->frame;
			slot = bytecode_a(instruction);
			continue;
		}
		if (i + 1 < now && may_be_set_unseen(stepper, frame))
			return unknown;
		if (bytecode_mode_a(context->layout, (uint8_t)instruction) == BCMdst &&
		    bytecode_a(instruction) == slot) {
			if (op != BC_MOV)
				return constant_value(context->layout, frame_at(context, frame)->proto, op,
						      instruction);
			slot = bytecode_d(instruction);
			continue;
		}
		if (bytecode_mode_a(context->layout, (uint8_t)instruction) == BCMbase &&
		    bytecode_a(instruction) <= slot)
			return unknown;
	}
	if (now > 0 && may_be_set_unseen(stepper, frame))
		return unknown;
	return value_at_start(stepper, frame, slot);
}

/* Whether a test or comparison holds. */
enum truth { TRUTH_UNKNOWN, TRUTH_FALSE, TRUTH_TRUE };

static enum truth truth_if(bool is_true)
{
	return is_true ? TRUTH_TRUE : TRUTH_FALSE;
}

static enum truth truth_of(const struct value *value)
{
	return value->is_known ? truth_if(value->type != IRT_NIL && value->type != IRT_FALSE) : TRUTH_UNKNOWN;
}

/* Are two values equal? The recorder emits no guard where types or constants tell. */
static enum truth are_equal(const struct value *left, const struct value *right)
{
	/* Metamethods may compare cdata with everything. */
	if (!left->is_known || !right->is_known || left->type == IRT_CDATA || right->type == IRT_CDATA)
		return TRUTH_UNKNOWN;
	if (left->type != right->type)
		return TRUTH_FALSE;
	if (left->type <= IRT_TRUE)
		return TRUTH_TRUE;
	return left->string && right->string ? truth_if(left->string == right->string) : TRUTH_UNKNOWN;
}

/* The jump that a test decides follows it. */
static void test(struct stepper *stepper, enum bytecode_op op)
{
	const struct path_point *point = &stepper->point;
	const struct value value = value_of(stepper, bytecode_d(stepper->instruction));
	enum truth truth = truth_of(&value);
	enum truth jumps_if = truth_if(op == BC_IST || op == BC_ISTC);

	if (truth == TRUTH_UNKNOWN || truth != jumps_if)
		add_step(stepper, point->frame, point->pc + 2 * BYTECODE_SIZE, 0);
	if (truth == TRUTH_UNKNOWN || truth == jumps_if)
		add_step(stepper, point->frame, point->pc + BYTECODE_SIZE, 0);
}

/* Does a comparison for equality jump? */
static enum truth jumps_if_equal(const struct stepper *stepper, enum bytecode_op op)
{
	const struct path_context *context = stepper->context;
	const uint32_t instruction = stepper->instruction;
	const bool is_negated = op == BC_ISNEV || op == BC_ISNES || op == BC_ISNEN || op == BC_ISNEP;
	struct value left, right;
	enum truth truth;

	if (op < BC_ISEQV || op > BC_ISNEP)
		return TRUTH_UNKNOWN;
	left = value_of(stepper, bytecode_a(instruction));
	right = op == BC_ISEQV || op == BC_ISNEV
			? value_of(stepper, bytecode_d(instruction))
			: constant_value(context->layout, frame_at(context, stepper->point.frame)->proto, op,
					 instruction);
	truth = are_equal(&left, &right);
	return truth == TRUTH_UNKNOWN ? truth : truth_if((truth == TRUTH_TRUE) != is_negated);
}

static void compare(struct stepper *stepper, enum bytecode_op op, const uint64_t pcs[static 2])
{
	const enum truth jumps = jumps_if_equal(stepper, op);

	for (unsigned i = 0; i < 2; i++)
		if (jumps == TRUTH_UNKNOWN)
			add_step(stepper, stepper->point.frame, pcs[i], COST_COMPARISON);
		else if (jumps == truth_if(i > 0))
			add_step(stepper, stepper->point.frame, pcs[i], 0);
}

/*---- All steps ----*/

static void find(struct stepper *stepper, enum bytecode_op op)
{
	const struct path_point *point = &stepper->point;
	uint64_t next = point->pc + BYTECODE_SIZE, pcs[2];
	int32_t callee;

	if (path_branch(stepper->context, point, pcs)) {
		compare(stepper, op, pcs);
		return;
	}
	switch ((int)op) {
	case BC_ISTC:
	case BC_ISFC:
	case BC_IST:
	case BC_ISF: test(stepper, op); return;
	case BC_JMP:
	case BC_UCLO:
	case BC_ISNEXT: add_step(stepper, point->frame, jump(point->pc, stepper->instruction), 0); return;
	case BC_ITERL:
	case BC_IITERL:
		add_step(stepper, point->frame, jump(point->pc, stepper->instruction), 0);
		add_step(stepper, point->frame, next, 0);
		return;
	case BC_CALLMT:
	case BC_CALLT: call(stepper, true); return;
	case BC_CALLM:
	case BC_CALL:
	case BC_ITERC: call(stepper, false); return;
	/* Does the work of next(): the recorder never enters a function for it (lj_record.c: rec_itern). */
	case BC_ITERN: add_step(stepper, point->frame, next, 0); return;
	case BC_RETM:
	case BC_RET:
	case BC_RET0:
	case BC_RET1: leave(stepper); return;
	default: break;
	}
	/* A metamethod is entered only if the goal shows it. */
	callee = goal_callee(stepper);
	if (callee >= 0)
		enter_goal(stepper, callee);
	add_step(stepper, point->frame, next, 0);
}

void path_steps_find(const struct path_context *context, const struct path_gap *gap,
		     const struct path_way *way, struct path_steps *ret_steps)
{
	struct stepper stepper = {
		.context = context,
		.gap = gap,
		.way = way,
		.point = way->points[way->count - 1],
		.steps = ret_steps,
	};
	enum bytecode_op op;

	ret_steps->count = 0;
	if (instruction_at(context, &stepper.point, &stepper.instruction, &op))
		find(&stepper, op);
}
