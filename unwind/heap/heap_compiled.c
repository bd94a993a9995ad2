/* SPDX-License-Identifier: MIT */
/*
 * Which local variables of a function that a trace runs are in their slots.
 *
 * A trace stores nothing into Lua's stack until it is left. When a root trace begins, the stack is whole,
 * with the frames below, to which side traces may return. What nothing assigns from then on is in its slot
 * still, in that trace and in side traces that it leads to, for as long as its scope lasts.
 * Facts: lj_record.c (lj_record_setup, lj_record_ret), lj_asm.c (asm_tail_link), lj_parse.c (fs_fixup_uv2,
 * fs_fixup_ret), lj_obj.h (GCproto).
 */
#include "unwind/heap/heap_reading.h"

#include "luajit-layouts/bytecode.h"
#include "unwind/compiled/trace_list.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/lua_names.h"
#include "unwind/trace/trace_block.h"
#include "unwind/values/trace_values.h"

enum {
	PARENTS_MAX = 256, /* of a trace; LuaJIT has at most maxside for each root */
	/* In a prototype's list of upvalues: */
	UPVALUE_OF_PARENT_SLOT =
		0x8000, /* PROTO_UV_LOCAL: a variable of the function that makes the closure */
	UPVALUE_NEVER_ASSIGNED = 0x4000, /* PROTO_UV_IMMUTABLE */
	UPVALUE_SLOT = 0xff,
};

static bool load_trace(struct heap_reading *reading, uint64_t address, struct trace *ret_trace)
{
	const struct layout *layout = reading->layout;
	const uint8_t *header = heap_object(reading, address, layout->GCtrace_size);
	size_t size = header && heap_field(header, layout->GChead_gct, 1) == GCT_TRACE
			      ? trace_block_size(layout, address, header)
			      : 0;

	if (!size)
		return false;
	*ret_trace = trace_of_header(layout, address, header);
	ret_trace->bytes = heap_object(reading, address, (int64_t)size);
	ret_trace->size = size;
	return ret_trace->bytes != NULL;
}

/*---- Where the function may have been when its frame became that of jit_base ----*/

static bool add_start(struct heap_compiled *compiled, uint64_t pc)
{
	if (!proto_contains_pc(compiled->proto, pc))
		return false;
	if (!compiled->startpc || pc < compiled->startpc)
		compiled->startpc = pc;
	return true;
}

/* Add the calls in the function that the trace may return from. False if one is unknown. */
static bool add_returns(const struct layout *layout, const struct trace *trace,
			struct heap_compiled *compiled)
{
	const uint32_t nins = trace_nins(trace, layout);

	for (uint32_t ref = TRACE_REF_BASE; ref < nins; ref++) {
		struct trace_instruction ins;
		uint64_t proto, pc;

		if (!trace_instruction(trace, layout, ref, &ins))
			return false;
		if (ins.op != IR_RETF)
			continue;
		compiled->stays_in_loop = false;
		if (!trace_constant(trace, layout, ins.op1, &proto) ||
		    !trace_constant(trace, layout, ins.op2, &pc) ||
		    (proto == compiled->proto->address && !add_start(compiled, pc - BYTECODE_SIZE)))
			return false;
	}
	return true;
}

/* LuaJIT gives up a root trace that leaves the loop that it began with. */
static bool is_loop(const struct layout *layout, const struct proto *proto, const struct trace *root)
{
	uint32_t last;

	switch ((int)bytecode_op(layout, (uint8_t)root->startins)) {
	case BC_FORL:
	case BC_ITERL: return true;
	case BC_LOOP:
		/* Not so of "repeat ... until true". */
		return proto_instruction(proto,
					 root->startpc + (uint64_t)(bytecode_j(root->startins) *
								    (int64_t)BYTECODE_SIZE),
					 &last) &&
		       bytecode_op(layout, (uint8_t)last) == BC_JMP && bytecode_j(last) < 0;
	default: return false;
	}
}

/* Add all starts of the trace and of those that lead to it. False if one is unknown. */
static bool add_starts(struct heap_reading *reading, struct trace trace, struct heap_compiled *compiled)
{
	const struct layout *layout = reading->layout;

	compiled->stays_in_loop = trace.root == 0 && is_loop(layout, compiled->proto, &trace);
	for (unsigned int i = 0; i < PARENTS_MAX; i++) {
		uint32_t parent, exitno;

		if (!add_returns(layout, &trace, compiled))
			return false;
		if (trace.root == 0)
			return trace.startpt != compiled->proto->address ||
			       add_start(compiled, trace.startpc);
		if (!trace_parent(&trace, layout, &parent, &exitno) ||
		    !load_trace(reading, heap_trace_address(reading, parent), &trace))
			return false;
	}
	return false;
}

/*
 * May the trace have stored its successor's jit_base, which is a frame of this prototype above its own? That
 * one's number is in g->vmstate only when it runs.
 */
static bool may_have_moved_on(struct heap_reading *reading, const struct trace *trace,
			      const struct proto *proto)
{
	const struct layout *layout = reading->layout;
	const uint32_t link = trace_link(trace, layout), snapshots = trace_snapshot_count(trace, layout);
	struct trace_frame frames[TRACE_FRAMES_MAX];
	struct trace next;

	if (!link || trace_linktype(trace, layout) == TRACE_LINK_LOOP)
		return false;
	if (!load_trace(reading, heap_trace_address(reading, link), &next))
		return true;
	return next.startpt == proto->address &&
	       (!snapshots || !trace_exit_frames(trace, layout, snapshots - 1, frames, TRACE_FRAMES_MAX) ||
		frames[0].base_slot != frame_slots(reading->gc64));
}

bool heap_compiled_find(struct heap_reading *reading, uint64_t address, const struct proto *proto,
			struct heap_compiled *ret_compiled)
{
	struct heap_compiled compiled = { .proto = proto };
	struct trace trace;

	if (!load_trace(reading, address, &trace) || may_have_moved_on(reading, &trace, proto) ||
	    !add_starts(reading, trace, &compiled) || !compiled.startpc)
		return false;
	*ret_compiled = compiled;
	return true;
}

/*---- What is assigned ----*/

/* May this child of the prototype assign the variable in the slot? */
static bool may_child_assign(struct heap_reading *reading, uint64_t address, uint32_t slot)
{
	const struct layout *layout = reading->layout;
	const uint8_t *header = heap_object(reading, address, layout->GCproto_size);
	struct proto child;
	uint64_t at, count;

	/* Constants are tables and strings, too. */
	if (!header || heap_field(header, layout->GChead_gct, 1) != GCT_PROTO)
		return !header;
	if (!heap_proto(reading, address, &child))
		return true;
	at = heap_ref(reading, child.bytes, layout->GCproto_uv);
	count = heap_field(child.bytes, layout->GCproto_sizeuv, 1);
	for (uint64_t i = 0; i < count; i++) {
		uint16_t upvalue;

		if (!proto_load(&child, at + i * sizeof(upvalue), &upvalue, sizeof(upvalue)))
			return true;
		if (upvalue & UPVALUE_OF_PARENT_SLOT && (upvalue & UPVALUE_SLOT) == slot &&
		    !(upvalue & UPVALUE_NEVER_ASSIGNED))
			return true;
	}
	return false;
}

static bool may_closure_assign(struct heap_reading *reading, const struct proto *proto, uint32_t slot)
{
	const uint64_t count = heap_field(proto->bytes, reading->layout->GCproto_sizekgc, 4);
	uint64_t object;

	if (!(proto->flags & PROTO_CHILD))
		return false;
	for (uint64_t i = 0; i < count; i++)
		if (!proto_kgc(reading->layout, proto, (uint32_t)i, &object) ||
		    may_child_assign(reading, object, slot))
			return true;
	return false;
}

/*
 * Once in scope, is the variable so for as long as its function runs? Not if a block ends before the function
 * does, or if goto leads back to where the variable is not yet declared.
 */
static bool is_lasting(const struct layout *layout, const struct proto *proto, const struct lua_local *local)
{
	if (local->end < proto->sizebc)
		return false;
	for (uint32_t at = local->begin; at < proto->sizebc; at++) {
		uint32_t instruction;
		enum bytecode_op op;

		if (!proto_instruction(proto, proto->bc + (uint64_t)at * BYTECODE_SIZE, &instruction))
			return false;
		op = bytecode_op(layout, (uint8_t)instruction);
		if ((op == BC_JMP || op == BC_UCLO) &&
		    (int64_t)at + 1 + bytecode_j(instruction) < (int64_t)local->begin)
			return false;
	}
	return true;
}

bool heap_compiled_name(struct heap_reading *reading, const struct heap_compiled *compiled, uint32_t slot,
			const char **ret_name)
{
	const struct layout *layout = reading->layout;
	const struct proto *proto = compiled->proto;
	struct lua_local locals[LUA_LOCALS_MAX];
	size_t count = lua_locals(layout, proto, compiled->startpc, locals);

	if (slot >= count || (!compiled->stays_in_loop && !is_lasting(layout, proto, &locals[slot])) ||
	    trace_local_is_assigned(layout, proto, &locals[slot], slot) ||
	    may_closure_assign(reading, proto, slot))
		return false;
	*ret_name = locals[slot].name;
	return true;
}
