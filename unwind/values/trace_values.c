/* SPDX-License-Identifier: MIT */
#include "unwind/values/trace_values.h"

#include <stdio.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "unwind/trace/trace_block.h"
#include "unwind/lua/global_state.h"
#include "unwind/lua/luajit.h"

enum {
	GC64_TAG_SHIFT = 47,
	GC32_TAG_SHIFT = 32,
};

const char trace_value_unknown[] = "unknown: it may be in a register of compiled code";

uint8_t trace_upvalue_count(const struct layout *layout, const struct proto *proto)
{
	uint8_t count = 0;

	proto_load(proto, proto->address + (uint64_t)layout->GCproto_sizeuv, &count, sizeof(count));
	return count;
}

/* The first slot of the frame that a trace begins in. */
static uint8_t start_slot(const struct layout *layout)
{
	return (uint8_t)(frame_slots(layout->gc64));
}

bool trace_has_inlined(const struct merged_frame *frame)
{
	return frame->compiled &&
	       (frame->trace_slot == 0 || frame->trace_slot != start_slot(&frame->global->vm->layout));
}

bool trace_local_is_assigned(const struct layout *layout, const struct proto *proto,
			     const struct lua_local *local, uint32_t slot)
{
	for (uint32_t at = local->begin; at < local->end && at < proto->sizebc; at++) {
		uint32_t instruction;
		enum bytecode_mode mode;

		if (!proto_instruction(proto, proto->bc + (uint64_t)at * BYTECODE_SIZE, &instruction))
			return true;
		mode = bytecode_mode_a(layout, (uint8_t)instruction);
		if (mode == BCMdst ? bytecode_a(instruction) == slot
				   : mode == BCMbase && bytecode_a(instruction) <= slot)
			return true;
	}
	return false;
}

/* May the trace return from the function that it began in? */
static bool returns(const struct trace *trace, const struct layout *layout)
{
	uint32_t nins = trace_nins(trace, layout);

	for (uint32_t ref = TRACE_REF_BASE; ref < nins; ref++) {
		struct trace_instruction instruction;

		if (!trace_instruction(trace, layout, ref, &instruction) || instruction.op == IR_RETF)
			return true;
	}
	return false;
}

/* Was the slot stored before the trace began, and not since? Side traces may have begun anywhere. */
static bool is_as_in_memory(const struct merged_frame *frame, const struct lua_local *local)
{
	const struct trace *trace = frame->trace;
	const struct proto *proto = frame->proto;
	uint64_t position;

	if (trace->root != 0 || trace_has_inlined(frame) || trace->startpt != proto->address ||
	    !proto_contains_pc(proto, trace->startpc) || returns(trace, &frame->global->vm->layout))
		return false;
	position = (trace->startpc - proto->bc) / BYTECODE_SIZE;
	return position >= local->begin && position < local->end;
}

/* A constant of the trace as a slot holds it. False if it is none of Lua's values. */
static bool constant_value(const struct trace *trace, const struct layout *layout, uint32_t ref,
			   uint64_t *ret_value)
{
	const unsigned shift = layout->gc64 ? GC64_TAG_SHIFT : GC32_TAG_SHIFT;
	struct trace_instruction constant;
	uint64_t value = 0;
	double number;

	if (!trace_instruction(trace, layout, ref, &constant))
		return false;
	if (constant.op == IR_KPRI) {
		/* IRT_NIL, IRT_FALSE and IRT_TRUE count as the tags do. */
		*ret_value = layout->gc64 ? ~((uint64_t)constant.type << shift)
					  : (uint64_t) ~(uint32_t)constant.type << shift;
		return constant.type <= 2;
	}
	if (!trace_constant(trace, layout, ref, &value))
		return false;
	switch ((int)constant.op) {
	case IR_KINT:
		number = (double)(int32_t)(uint32_t)value;
		memcpy(ret_value, &number, sizeof(number));
		return constant.type == IRT_INT;
	case IR_KNUM: *ret_value = value; return true;
	case IR_KGC: *ret_value = ~(uint64_t)constant.type << shift | value; return true;
	default: return false;
	}
}

/* The value by the trace's last snapshot, if that has a constant for the slot. */
static bool find_constant(const struct merged_frame *frame, const struct lua_local *local, uint32_t slot,
			  uint64_t *ret_value)
{
	const struct layout *layout = &frame->global->vm->layout;
	struct trace_frame frames[TRACE_FRAMES_MAX];
	uint32_t refs[TRACE_SLOTS], number, ref;
	size_t count;

	if (!frame->trace_pc || !frame->trace_slot || frame->pc_is_near ||
	    frame->trace_slot + slot >= TRACE_SLOTS ||
	    !trace_snapshot_at(frame->trace, layout, frame->trace_pc, &number) ||
	    !trace_snapshot_refs(frame->trace, layout, number, refs))
		return false;
	ref = refs[frame->trace_slot + slot];
	if (ref == 0 || ref >= TRACE_REF_BIAS)
		return false;
	count = trace_exit_frames(frame->trace, layout, number, frames, TRACE_FRAMES_MAX);
	for (size_t i = 0; i < count; i++) {
		uint64_t position = (frames[i].pc - frame->proto->bc) / BYTECODE_SIZE;

		if (frames[i].base_slot == frame->trace_slot)
			return proto_contains_pc(frame->proto, frames[i].pc) && position >= local->begin &&
			       position < local->end && constant_value(frame->trace, layout, ref, ret_value);
	}
	return false;
}

void trace_value(const struct merged_frame *frame, const struct lua_local *local, uint32_t slot,
		 struct trace_value *ret_value)
{
	struct trace_value value = { .is_known = false };

	snprintf(value.reason, sizeof(value.reason), "%s", trace_value_unknown);
	if (frame->trace && local && !(frame->proto->flags & PROTO_CHILD) &&
	    !trace_local_is_assigned(&frame->global->vm->layout, frame->proto, local, slot)) {
		value.is_known = is_as_in_memory(frame, local);
		if (!value.is_known)
			value.is_known = value.is_constant = value.of_snapshot = find_constant(
				frame, local, slot, &value.value);
	}
	if (!value.is_known && frame->trace)
		snprintf(value.reason, sizeof(value.reason), "unknown: it may be in a register of trace %u",
			 frame->trace->number);
	*ret_value = value;
}
