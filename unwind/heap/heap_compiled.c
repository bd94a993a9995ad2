/* SPDX-License-Identifier: MIT */
/*
 * Which local variables of a function that a trace runs are in their slots.
 *
 * A trace stores nothing into Lua's stack until it is left. When a root trace begins, the stack is whole. What
 * nothing assigns from then on is in its slot still, in that trace and in side traces that it leads to.
 * Facts: lj_record.c (lj_record_setup), lj_asm.c (asm_tail_link), lj_parse.c (fs_fixup_uv2), lj_obj.h (GCproto).
 */
#include "unwind/heap/heap_reading.h"

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
	*ret_trace = (struct trace){
		.address = address,
		.number = (uint32_t)heap_field(header, layout->GCtrace_traceno, 2),
		.root = (uint16_t)heap_field(header, layout->GCtrace_root, 2),
		.startpt = heap_ref(reading, header, layout->GCtrace_startpt),
		.startpc = heap_ref(reading, header, layout->GCtrace_startpc),
		.bytes = heap_object(reading, address, (int64_t)size),
		.size = size,
	};
	return ret_trace->bytes != NULL;
}

/* The root trace, if none on the way to it may return from the function that it began in. */
static bool find_root(struct heap_reading *reading, uint64_t address, struct trace *ret_root)
{
	struct trace trace;

	for (unsigned int i = 0; i < PARENTS_MAX; i++) {
		uint32_t parent, exitno;

		if (!load_trace(reading, address, &trace) || trace_may_return(&trace, reading->layout))
			return false;
		if (trace.root == 0) {
			*ret_root = trace;
			return true;
		}
		if (!trace_parent(&trace, reading->layout, &parent, &exitno))
			return false;
		address = heap_trace_address(reading, parent);
	}
	return false;
}

bool heap_compiled_find(struct heap_reading *reading, uint64_t trace, const struct proto *proto, uint64_t pc,
			struct heap_compiled *ret_compiled)
{
	struct trace root;

	if (!find_root(reading, trace, &root) || root.startpt != proto->address ||
	    !proto_contains_pc(proto, root.startpc))
		return false;
	*ret_compiled = (struct heap_compiled){ .proto = proto, .startpc = root.startpc, .pc = pc };
	return true;
}

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

bool heap_compiled_name(struct heap_reading *reading, const struct heap_compiled *compiled, uint32_t slot,
			const char **ret_name)
{
	const struct proto *proto = compiled->proto;
	struct lua_local locals[LUA_LOCALS_MAX];
	const uint64_t position = (compiled->pc - proto->bc) / BYTECODE_SIZE;
	size_t count = lua_locals(reading->layout, proto, compiled->startpc, locals);

	if (slot >= count ||
	    (compiled->pc && (position < locals[slot].begin || position >= locals[slot].end)) ||
	    trace_local_is_assigned(reading->layout, proto, &locals[slot], slot) ||
	    may_closure_assign(reading, proto, slot))
		return false;
	*ret_name = locals[slot].name;
	return true;
}
