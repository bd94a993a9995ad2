/* SPDX-License-Identifier: MIT */
#include "unwind/jit/trace_calls.h"

#include "unwind/jit/trace_key.h"
#include "unwind/trace/trace_block.h"
#include "unwind/lua/luajit.h"

enum {
	SNAPSHOTS_MAX = 600, /* snapshots searched for calls */
	NEIGHBOURS = 40,     /* traces before and after this one, likewise */
};

struct finder {
	struct trace_calls *calls;
	const struct trace_numbers *numbers;
	const struct trace *trace;
	const struct layout *layout;
	struct lua_objects *objects;
	unsigned snapshots_seen;
};

/*---- Constants ----*/

static bool is_callee(const struct trace_calls *calls, const struct proto *proto)
{
	for (size_t i = 0; i < calls->callee_count; i++)
		if (calls->callees[i] == proto)
			return true;
	return false;
}

bool trace_calls_may_call(const struct trace_calls *calls, const struct proto *proto)
{
	return calls->is_incomplete || is_callee(calls, proto);
}

bool trace_calls_may_call_function(const struct trace_calls *calls, const struct function_object *function)
{
	if (function->proto)
		return trace_calls_may_call(calls, function->proto);
	for (size_t i = 0; i < calls->function_count; i++)
		if (calls->functions[i]->address == function->address)
			return true;
	return calls->is_incomplete;
}

static void add_callee(struct trace_calls *calls, const struct proto *proto)
{
	if (!proto || calls->callee_count == TRACE_CALLEES_MAX)
		calls->is_incomplete = true;
	else if (!is_callee(calls, proto))
		calls->callees[calls->callee_count++] = proto;
}

static void find_callees(struct finder *finder)
{
	struct trace_calls *calls = finder->calls;
	uint64_t constants[TRACE_CALLEES_MAX];
	size_t count = trace_constants(finder->trace, finder->layout, TRACE_FUNCTIONS, constants,
				       TRACE_CALLEES_MAX);

	calls->is_incomplete = count == TRACE_CALLEES_MAX;
	for (size_t i = 0; i < count; i++) {
		const struct function_object *function = lua_objects_function(finder->objects, constants[i]);

		if (!function) {
			calls->is_incomplete = true;
			continue;
		}
		calls->functions[calls->function_count++] = function;
		if (function->ffid == FF_LUA)
			add_callee(calls, function->proto);
		else
			calls->has_builtin = true;
	}
	count = trace_constants(finder->trace, finder->layout, TRACE_PROTOS, constants, TRACE_CALLEES_MAX);
	calls->is_incomplete |= count == TRACE_CALLEES_MAX;
	for (size_t i = 0; i < count; i++)
		add_callee(calls, lua_objects_proto(finder->objects, constants[i]));
}

/*---- Checks ----*/

/* Is this a check of a called function? Then fill in of what. */
static bool is_check(const struct finder *finder, const struct trace_instruction *ins,
		     struct trace_check *check)
{
	const struct function_object *function;
	struct trace_instruction operand;
	uint64_t value;

	if (ins->op != IR_EQ || !ins->guard ||
	    !trace_constant(finder->trace, finder->layout, ins->op2, &value))
		return false;
	/* Not the start frame's function: LuaJIT specialises to that for its upvalues (rec_upvalue()). */
	if (trace_instruction(finder->trace, finder->layout, ins->op1, &operand) && operand.op == IR_SLOAD &&
	    operand.op1 == 0)
		return false;
	if (!trace_instruction(finder->trace, finder->layout, ins->op2, &operand))
		return false;
	if (operand.op == IR_KGC && operand.type == IRT_FUNC) {
		function = lua_objects_function(finder->objects, value);
		if (!function)
			return false;
		check->callee = function->proto;
		check->function = value;
		return true;
	}
	/* If a function has many closures, the trace checks GCfunc.pc. */
	if (operand.op != IR_KPTR && operand.op != IR_KKPTR)
		return false;
	check->callee = lua_objects_proto_of_pc(finder->objects, value);
	return check->callee && check->callee->bc == value;
}

/* Where was what is checked read from, and by which key? */
static void find_origin(const struct finder *finder, const struct trace_instruction *ins,
			struct trace_check *check)
{
	const struct trace *trace = finder->trace;
	struct trace_instruction operand;

	if (!trace_instruction(trace, finder->layout, ins->op1, &operand))
		return;
	/* GCfunc.pc of the function */
	if (operand.op == IR_FLOAD && !trace_instruction(trace, finder->layout, operand.op1, &operand))
		return;
	if (operand.op == IR_HLOAD || operand.op == IR_ALOAD)
		check->of = CHECK_OF_TABLE;
	else if (operand.op == IR_ULOAD)
		check->of = CHECK_OF_UPVALUE;
	if (operand.op == IR_HLOAD && trace_instruction(trace, finder->layout, operand.op1, &operand) &&
	    (operand.op == IR_HREFK || operand.op == IR_HREF))
		trace_key_of_lookup(trace, finder->layout, &operand, &check->key);
}

static void find_checks(struct finder *finder)
{
	struct trace_calls *calls = finder->calls;
	uint32_t nins = trace_nins(finder->trace, finder->layout);

	for (uint32_t ref = TRACE_REF_BASE; ref < nins && calls->check_count < TRACE_CHECKS_MAX; ref++) {
		struct trace_check check = { .ref = ref };
		struct trace_instruction ins;

		if (!trace_instruction(finder->trace, finder->layout, ref, &ins) ||
		    !is_check(finder, &ins, &check))
			continue;
		find_origin(finder, &ins, &check);
		calls->checks[calls->check_count++] = check;
	}
}

void trace_calls_checks(const struct trace_calls *calls, uint32_t ref, uint32_t end_ref, uint32_t *ret_first,
			uint32_t *ret_end)
{
	uint32_t check = 0;

	while (check < calls->check_count && calls->checks[check].ref < ref)
		check++;
	*ret_first = check;
	while (check < calls->check_count && calls->checks[check].ref < end_ref)
		check++;
	*ret_end = check;
}

/*---- Upvalues ----*/

static void add_upvalue(struct trace_calls *calls, const struct trace_upvalue *upvalue)
{
	for (size_t i = 0; i < calls->upvalue_count; i++)
		if (calls->upvalues[i].function == upvalue->function &&
		    calls->upvalues[i].index == upvalue->index)
			return;
	calls->upvalues[calls->upvalue_count++] = *upvalue;
}

/* The upvalue that an IR_UREFO or IR_UREFC is of. */
static struct trace_upvalue upvalue_at(const struct finder *finder, uint32_t ref,
				       const struct trace_instruction *ins)
{
	struct trace_upvalue upvalue = { .ref = ref, .index = trace_upvalue_index(ins) };

	if (!trace_constant(finder->trace, finder->layout, ins->op1, &upvalue.function))
		upvalue.function = 0;
	return upvalue;
}

static void add_store(const struct finder *finder, uint32_t ref, const struct trace_instruction *ins)
{
	struct trace_calls *calls = finder->calls;
	struct trace_store *store = &calls->stores[calls->store_count];
	struct trace_instruction to;

	if (ins->type != IRT_FUNC || calls->store_count == TRACE_STORES_MAX ||
	    !trace_instruction(finder->trace, finder->layout, ins->op1, &to))
		return;
	store->upvalue = upvalue_at(finder, ref, &to);
	if (!trace_constant(finder->trace, finder->layout, ins->op2, &store->stored))
		store->stored = 0;
	calls->store_count++;
}

static void find_upvalues(struct finder *finder)
{
	struct trace_calls *calls = finder->calls;
	uint32_t nins = trace_nins(finder->trace, finder->layout);

	for (uint32_t ref = TRACE_REF_BASE; ref < nins && calls->upvalue_count < TRACE_UPVALUES_MAX; ref++) {
		struct trace_upvalue upvalue;
		struct trace_instruction ins;

		if (!trace_instruction(finder->trace, finder->layout, ref, &ins))
			continue;
		if (ins.op == IR_USTORE)
			add_store(finder, ref, &ins);
		if (ins.op != IR_UREFO && ins.op != IR_UREFC)
			continue;
		upvalue = upvalue_at(finder, ref, &ins);
		add_upvalue(calls, &upvalue);
	}
}

/*---- Calls ----*/

void trace_calls_add(struct trace_calls *calls, uint64_t pc, const struct proto *callee)
{
	if (!pc || !callee || calls->call_count == TRACE_CALLS_MAX)
		return;
	for (size_t i = 0; i < calls->call_count; i++)
		if (calls->calls[i].pc == pc && calls->calls[i].callee == callee)
			return;
	calls->calls[calls->call_count++] = (struct trace_call){ pc, callee };
}

/* Find the calls that a trace's snapshots show. */
static void find_calls_of(struct finder *finder, const struct trace *trace)
{
	struct trace_frame inlined[TRACE_FRAMES_MAX];
	uint32_t snapshots = trace_snapshot_count(trace, finder->layout);

	for (uint32_t number = 0; number < snapshots && finder->snapshots_seen < SNAPSHOTS_MAX; number++) {
		size_t count = trace_exit_frames(trace, finder->layout, number, inlined, TRACE_FRAMES_MAX);

		finder->snapshots_seen++;
		for (size_t i = 0; i + 1 < count; i++)
			if (inlined[i].pc && !inlined[i + 1].is_continuation)
				trace_calls_add(finder->calls, inlined[i + 1].pc,
						lua_objects_proto_of_pc(finder->objects, inlined[i].pc));
	}
}

/* Search this trace and its neighbours by number: traces compiled in sequence mostly are of the same code. */
static void find_calls(struct finder *finder)
{
	uint32_t number = finder->trace->number;

	find_calls_of(finder, finder->trace);
	for (uint32_t distance = 1; distance <= NEIGHBOURS; distance++) {
		const struct trace *before = distance < number
						     ? trace_numbered(finder->numbers, number - distance)
						     : NULL;
		const struct trace *after = trace_numbered(finder->numbers, number + distance);

		if (before)
			find_calls_of(finder, before);
		if (after)
			find_calls_of(finder, after);
	}
}

void trace_calls_find(struct trace_calls *ret_calls, const struct trace_numbers *numbers,
		      const struct trace *trace, const struct layout *layout, struct lua_objects *objects)
{
	struct finder finder = {
		.calls = ret_calls,
		.numbers = numbers,
		.trace = trace,
		.layout = layout,
		.objects = objects,
	};

	*ret_calls = (struct trace_calls){ 0 };
	find_callees(&finder);
	find_checks(&finder);
	find_upvalues(&finder);
	find_calls(&finder);
}
