/* SPDX-License-Identifier: MIT */
/*
 * Which variables of a compiled function are in memory, and which ones a snapshot of its trace has as
 * constants.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_proto.h"
#include "tests/unit/made_up_trace.h"
#include "unwind/lua/global_state.h"
#include "unwind/lua/luajit.h"
#include "unwind/values/trace_values.h"

enum {
	PROTO = 0x3000,
	BYTECODES = 0x40,
	COUNT = 8,
	BEGIN = 2, /* the scope of the variable */
	END = 6,
	SLOT = 1,
	CONSTANT = TRACE_REF_BIAS - 8,
	SNAPSHOT = 3,
	SIZEUV_AT = 0x30,
};

static struct made_up_trace made;
static struct vm_code vm;
static struct global_state global = { .g = 0x100, .vm = &vm };
static struct proto proto;
static uint8_t proto_bytes[BYTECODES + COUNT * BYTECODE_SIZE];
static struct bytecode bytecodes[COUNT];
static struct lua_local local;
static struct merged_frame frame;
static struct trace_value value;

/* The trace's snapshot at the frame's machine code: what the slots have, and the function that goes on. */
static struct {
	bool is_there, has_refs;
	uint32_t refs[TRACE_SLOTS];
	struct trace_frame frames[2];
	size_t count;
} snapshot;

INSTEAD_OF(trace_snapshot_at);
bool __wrap_trace_snapshot_at(const struct trace *trace, const struct layout *layout, uint64_t pc,
			      uint32_t *ret_number)
{
	assert_ptr_equal(trace, &made.trace);
	assert_ptr_equal(layout, &vm.layout);
	assert_int_equal(pc, frame.trace_pc);
	*ret_number = SNAPSHOT;
	return snapshot.is_there;
}

INSTEAD_OF(trace_snapshot_refs);
bool __wrap_trace_snapshot_refs(const struct trace *trace, const struct layout *layout, uint32_t number,
				uint32_t ret_refs[static TRACE_SLOTS])
{
	(void)trace;
	(void)layout;
	assert_int_equal(number, SNAPSHOT);
	memcpy(ret_refs, snapshot.refs, sizeof(snapshot.refs));
	return snapshot.has_refs;
}

INSTEAD_OF(trace_exit_frames);
size_t __wrap_trace_exit_frames(const struct trace *trace, const struct layout *layout, uint32_t exitno,
				struct trace_frame *ret_frames, size_t max)
{
	(void)trace;
	(void)layout;
	assert_int_equal(exitno, SNAPSHOT);
	assert_true(max >= snapshot.count);
	memcpy(ret_frames, snapshot.frames, sizeof(snapshot.frames));
	return snapshot.count;
}

static uint64_t pc_of(uint32_t position)
{
	return proto.bc + (uint64_t)position * BYTECODE_SIZE;
}

static void make_function(void)
{
	const uint8_t flags = proto.flags;

	make_bytecodes(&proto, &vm.layout, PROTO, proto_bytes, BYTECODES, bytecodes, COUNT);
	proto.flags = flags;
}

/* A root trace that begins in the variable's scope; its function stores into no slot but the last. */
static void make(bool gc64)
{
	made_up_trace_begin(&made, gc64);
	made.layout.GCproto_sizeuv = SIZEUV_AT;
	vm = (struct vm_code){ .layout = made.layout };
	memset(&snapshot, 0, sizeof(snapshot));
	proto.flags = 0;
	for (size_t i = 0; i < COUNT; i++)
		bytecodes[i] = (struct bytecode){ .op = BC_KSHORT, .a = 9 };
	make_function();
	made.trace.startpt = PROTO;
	made.trace.startpc = pc_of(BEGIN);
	local = (struct lua_local){ .name = "a", .begin = BEGIN, .end = END };
	frame = (struct merged_frame){ .kind = MERGED_LUA,
				       .global = &global,
				       .proto = &proto,
				       .compiled = true,
				       .trace = &made.trace,
				       .trace_slot = (uint8_t)frame_slots(gc64) };
}

static int make_gc64(void **state)
{
	(void)state;
	make(true);
	return 0;
}

static void look(void)
{
	memset(&value, 'x', sizeof(value));
	trace_value(&frame, &local, SLOT, &value);
}

static void assert_in_memory(bool is_known)
{
	look();
	assert_int_equal(value.is_known, is_known);
	assert_false(value.is_known && value.is_constant);
	if (!is_known)
		assert_string_equal(value.reason, "unknown: it may be in a register of trace 1");
}

/*---- In memory ----*/

static void a_variable_is_as_it_was_when_the_trace_began_in_its_scope(void **state)
{
	(void)state;
	for (int gc64 = 0; gc64 < 2; gc64++) {
		make(gc64);
		for (uint32_t at = 0; at < COUNT; at++) {
			made.trace.startpc = pc_of(at);
			assert_in_memory(at >= BEGIN && at < END);
		}
		made.trace.startpc = pc_of(BEGIN);
		/* In another function, or for a part that the trace has called. */
		made.trace.startpt++;
		assert_in_memory(false);
		made.trace.startpt--;
		frame.trace_slot++;
		assert_in_memory(false);
		frame.trace_slot = 0;
		assert_in_memory(false);
		frame.trace_slot = (uint8_t)frame_slots(gc64);
		/* A side trace may have begun anywhere. */
		made.trace.root = 7;
		assert_in_memory(false);
	}
}

static void a_variable_that_is_assigned_may_be_in_a_register(void **state)
{
	static const struct bytecode stores[] = { { .op = BC_KSHORT, .a = SLOT },
						  { .op = BC_MOV, .a = SLOT },
						  { .op = BC_CALL, .a = SLOT },
						  { .op = BC_CALL, .a = SLOT - 1 } },
				     others[] = { { .op = BC_KSHORT, .a = SLOT + 1 },
						  { .op = BC_KSHORT, .a = SLOT - 1 },
						  { .op = BC_ISLT, .a = SLOT },
						  { .op = BC_CALL, .a = SLOT + 1 } };

	(void)state;
	for (uint32_t at = 0; at < COUNT; at++) {
		for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
			make(true);
			bytecodes[at] = stores[i];
			make_function();
			assert_in_memory(at < BEGIN || at >= END);
			bytecodes[at] = others[i];
			make_function();
			assert_in_memory(true);
		}
	}
	/* A closure may assign it; and a function that was copied in part, too. */
	make(true);
	proto.flags = 0x01;
	assert_in_memory(false);
	proto.flags = 0xfe;
	assert_in_memory(true);
	proto.size -= (COUNT - END + 1) * BYTECODE_SIZE;
	assert_in_memory(false);
	/* A scope without an end ends with the function. */
	make(true);
	local.end = 100;
	assert_in_memory(true);
}

static void a_trace_that_may_return_tells_nothing(void **state)
{
	(void)state;
	put_ir(&made, TRACE_REF_BASE + 40, IR_RETF, 0, 0, 0);
	assert_in_memory(false);
	make(true);
	put_ir(&made, MADE_UP_NINS - 1, IR_RETF, 0, 0, 0);
	assert_in_memory(false);
	make(true);
	put_ir(&made, TRACE_REF_BASE, IR_RETF, 0, 0, 0);
	assert_in_memory(false);
	make(true);
	made.trace.size = MADE_UP_IR; /* its IR was not copied */
	assert_in_memory(false);
}

static void what_is_unknown_of_a_frame_has_a_reason(void **state)
{
	(void)state;
	trace_value(&frame, NULL, SLOT, &value);
	assert_false(value.is_known);
	assert_string_equal(value.reason, "unknown: it may be in a register of trace 1");
	frame.trace = NULL;
	look();
	assert_false(value.is_known);
	assert_string_equal(value.reason, trace_value_unknown);
}

static void a_called_function_is_told_by_its_slot(void **state)
{
	(void)state;
	for (int gc64 = 0; gc64 < 2; gc64++) {
		make(gc64);
		assert_false(trace_has_inlined(&frame));
		frame.trace_slot++;
		assert_true(trace_has_inlined(&frame));
		frame.trace_slot = 0;
		assert_true(trace_has_inlined(&frame));
		frame.compiled = false;
		assert_false(trace_has_inlined(&frame));
	}
	proto_bytes[SIZEUV_AT] = 5;
	assert_int_equal(trace_upvalue_count(&vm.layout, &proto), 5);
	proto_bytes[SIZEUV_AT] = 0;
	assert_int_equal(trace_upvalue_count(&vm.layout, &proto), 0);
}

/*---- Constants ----*/

/* A side trace whose snapshot has this reference for the variable, in the first function of the trace. */
static void make_constant(bool gc64)
{
	make(gc64);
	made.trace.root = 7;
	frame.trace_pc = MADE_UP_MCODE + 16;
	snapshot.is_there = snapshot.has_refs = true;
	snapshot.refs[frame.trace_slot + SLOT] = CONSTANT;
	snapshot.frames[0] = (struct trace_frame){ .pc = pc_of(0), .base_slot = frame.trace_slot + 20 };
	snapshot.frames[1] = (struct trace_frame){ .pc = pc_of(BEGIN), .base_slot = frame.trace_slot };
	snapshot.count = 2;
	put_ir(&made, CONSTANT, IR_KINT, IRT_INT, 12, 0);
}

static uint64_t bits_of(double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return bits;
}

static void assert_constant(uint64_t expected)
{
	look();
	assert_true(value.is_known && value.is_constant && value.of_snapshot);
	assert_true(value.value == expected);
}

static void assert_none(void)
{
	assert_in_memory(false);
	assert_false(value.of_snapshot);
}

static void a_constant_is_as_a_slot_would_hold_it(void **state)
{
	(void)state;
	for (int gc64 = 0; gc64 < 2; gc64++) {
		const unsigned int shift = gc64 ? 47 : 32;

		make_constant(gc64);
		assert_constant(bits_of(12));
		put_ir(&made, CONSTANT, IR_KINT, IRT_INT, 0xfffb, 0xffff);
		assert_constant(bits_of(-5));
		put_ir(&made, CONSTANT, IR_KINT, IRT_NUM, 12, 0);
		assert_none();
		put_wide(&made, CONSTANT, IR_KNUM, IRT_NUM, bits_of(0.25));
		assert_constant(bits_of(0.25));
		put_object(&made, CONSTANT, IRT_STR, 0x12345678);
		assert_constant(~(uint64_t)IRT_STR << shift | 0x12345678);
		for (uint8_t primitive = 0; primitive < 4; primitive++) {
			put_ir(&made, CONSTANT, IR_KPRI, primitive, 0, 0);
			if (primitive > 2) /* a pointer */
				assert_none();
			else if (gc64)
				assert_constant(~((uint64_t)primitive << shift));
			else
				assert_constant((uint64_t) ~(uint32_t)primitive << shift);
		}
		/* It is no constant of Lua's. */
		put_wide(&made, CONSTANT, IR_KINT64, 0, 12);
		assert_none();
	}
}

static void a_snapshot_tells_nothing_but_where_it_is_sure(void **state)
{
	(void)state;
	for (int way = 0; way < 13; way++) {
		make_constant(true);
		assert_constant(bits_of(12));
		switch (way) {
		case 0: frame.trace_pc = 0; break;
		case 1: frame.trace_slot = 0; break;
		case 2: frame.pc_is_near = true; break;
		case 3: snapshot.is_there = false; break;
		case 4: snapshot.has_refs = false; break;
		case 5: snapshot.refs[frame.trace_slot + SLOT] = 0; break;
		case 6: snapshot.refs[frame.trace_slot + SLOT] = TRACE_REF_BIAS; break;
		case 7: snapshot.count = 1; break;
		case 8: snapshot.frames[1].pc = pc_of(BEGIN - 1); break;
		case 9: snapshot.frames[1].pc = pc_of(END); break;
		case 10: snapshot.frames[1].pc = pc_of(COUNT); break;
		case 11: frame.trace_slot = TRACE_SLOTS - SLOT; break;
		case 12:
			bytecodes[BEGIN] = (struct bytecode){ .op = BC_KSHORT, .a = SLOT };
			make_function();
			break;
		default: fail();
		}
		assert_none();
	}
	make_constant(true);
	snapshot.frames[1].pc = pc_of(END - 1);
	assert_constant(bits_of(12));
	/* It is the innermost one. */
	snapshot.frames[0] = snapshot.frames[1];
	snapshot.count = 1;
	assert_constant(bits_of(12));
	/* What is in memory is read there. */
	made.trace.root = 0;
	assert_in_memory(true);
	assert_false(value.of_snapshot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_variable_is_as_it_was_when_the_trace_began_in_its_scope),
		cmocka_unit_test(a_variable_that_is_assigned_may_be_in_a_register),
		cmocka_unit_test_setup(a_trace_that_may_return_tells_nothing, make_gc64),
		cmocka_unit_test_setup(what_is_unknown_of_a_frame_has_a_reason, make_gc64),
		cmocka_unit_test(a_called_function_is_told_by_its_slot),
		cmocka_unit_test(a_constant_is_as_a_slot_would_hold_it),
		cmocka_unit_test(a_snapshot_tells_nothing_but_where_it_is_sure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
