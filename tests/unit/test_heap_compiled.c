/* SPDX-License-Identifier: MIT */
/*
 * Which variables of a function that a trace runs have their names: those that are sure to be in their slots.
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
#include "unwind/compiled/trace_list.h"
#include "unwind/heap/heap_reading.h"
#include "unwind/lua/lua_names.h"

enum {
	PROTO = 0x3000,
	OTHER = 0x5000, /* another prototype */
	CHILD = 0x6000,
	BYTECODES = 0x40,
	COUNT = 12,
	BLOCK_ENDS = 9, /* the scope of a variable in a block */
	DECLARED = 3,   /* where the variables' scopes begin */
	LOOP = 6,       /* where the root trace begins */
	CALL = 4,       /* of a function, before the loop */
	WHOLE = 0,      /* slots: of a variable until the function ends, */
	BLOCK = 1,      /* and of one in a block */
	SIZEKGC_AT = 0x28,
	SIZEUV_AT = 0x2c,
	UV_AT = 0x30,
	UPVALUES_AT = 0x38,
	HEADER = MADE_UP_IR,
	APART = 0x10000, /* traces' addresses */
	TRACES = 4,      /* by number; 0 is none */
	RETURNED_TO = TRACE_REF_BIAS - 8,
	RETURN_PC = TRACE_REF_BIAS - 4,
	LOCAL_OF_PARENT = 0x8000,
	NEVER_ASSIGNED = 0x4000,
};

static struct made_up_trace traces[TRACES];
static struct vm_code vm;
static struct heap_reading reading;
static struct heap_compiled compiled;
static struct proto proto;
static uint8_t proto_bytes[BYTECODES + COUNT * BYTECODE_SIZE], child_bytes[BYTECODES];
static struct bytecode bytecodes[COUNT];
static struct trace_frame last; /* the innermost frame where a trace ends */

static uint64_t address_of(uint32_t number)
{
	return number && number < TRACES ? MADE_UP_TRACE + (uint64_t)number * APART : 0;
}

INSTEAD_OF(heap_copy_view);
const uint8_t *__wrap_heap_copy_view(struct heap_copy *copy, uint64_t address, size_t length)
{
	(void)copy;
	(void)length;
	for (uint32_t number = 1; number < TRACES; number++)
		if (address == address_of(number))
			return traces[number].bytes;
	return address == CHILD ? child_bytes : NULL;
}

INSTEAD_OF(trace_block_size);
size_t __wrap_trace_block_size(const struct layout *layout, uint64_t address, const uint8_t *header)
{
	(void)layout;
	(void)address;
	(void)header;
	return MADE_UP_TRACE_BYTES;
}

INSTEAD_OF(heap_trace_address);
uint64_t __wrap_heap_trace_address(struct heap_reading *of, uint32_t number)
{
	(void)of;
	return address_of(number);
}

INSTEAD_OF(trace_exit_frames);
size_t __wrap_trace_exit_frames(const struct trace *trace, const struct layout *layout, uint32_t exitno,
				struct trace_frame *ret_frames, size_t max)
{
	(void)trace;
	(void)layout;
	(void)max;
	assert_int_equal(exitno, 0);
	ret_frames[0] = last;
	return 1;
}

INSTEAD_OF(lua_locals);
size_t __wrap_lua_locals(const struct layout *layout, const struct proto *of, uint64_t pc,
			 struct lua_local ret_locals[static LUA_LOCALS_MAX])
{
	const uint64_t position = (pc - of->bc) / BYTECODE_SIZE;

	(void)layout;
	ret_locals[WHOLE] = (struct lua_local){ .name = "whole", .begin = DECLARED, .end = COUNT };
	ret_locals[BLOCK] = (struct lua_local){ .name = "block", .begin = DECLARED, .end = BLOCK_ENDS };
	return position < DECLARED ? 0 : position < BLOCK_ENDS ? 2 : 1;
}

INSTEAD_OF(proto_kgc);
bool __wrap_proto_kgc(const struct layout *layout, const struct proto *of, uint32_t number,
		      uint64_t *ret_object)
{
	(void)layout;
	(void)of;
	assert_int_equal(number, 0);
	*ret_object = CHILD;
	return true;
}

INSTEAD_OF(heap_proto);
bool __wrap_heap_proto(struct heap_reading *of, uint64_t address, struct proto *ret_proto)
{
	(void)of;
	*ret_proto = (struct proto){ .address = address, .size = sizeof(child_bytes), .bytes = child_bytes };
	return true;
}

static uint64_t pc_of(uint32_t position)
{
	return proto.bc + (uint64_t)position * BYTECODE_SIZE;
}

static void put_trace(uint32_t number, uint32_t root, uint64_t startpt, uint64_t startpc)
{
	struct made_up_trace *made = &traces[number];
	struct layout *layout = &made->layout;
	const uint64_t at = address_of(number);

	made_up_trace_begin(made, false);
	layout->GChead_gct = 6;
	layout->GCtrace_size = HEADER;
	layout->GCtrace_traceno = 48;
	layout->GCtrace_root = 50;
	layout->GCtrace_startins = 52;
	layout->GCtrace_startpt = 56;
	layout->GCtrace_startpc = 60;
	layout->GCproto_sizekgc = SIZEKGC_AT;
	layout->GCproto_sizeuv = SIZEUV_AT;
	layout->GCproto_uv = UV_AT;
	layout->GCproto_size = BYTECODES;
	trace_put(made, layout->GCtrace_ir, at + MADE_UP_IR - (uint64_t)MADE_UP_NK * TRACE_IR_SIZE, 8);
	trace_put(made, layout->GCtrace_snap, at + MADE_UP_SNAPSHOTS, 8);
	trace_put(made, layout->GCtrace_snapmap, at + MADE_UP_MAP, 8);
	trace_put(made, layout->GChead_gct, GCT_TRACE, 1);
	trace_put(made, layout->GCtrace_traceno, number, 2);
	trace_put(made, layout->GCtrace_root, root, 2);
	trace_put(made, layout->GCtrace_startins, (uint64_t)bytecode_number(layout, BC_FORL), 4);
	trace_put(made, layout->GCtrace_startpt, startpt, 4);
	trace_put(made, layout->GCtrace_startpc, startpc, 4);
	put_ir(made, TRACE_REF_BASE, IR_BASE, 0, (uint16_t)(number - 1), 0);
	put_snapshot(made, TRACE_REF_BASE + 1, 0, NULL, 0);
}

/* Two root traces that loop, the second in another function; and a side trace of it. */
static int begin(void **state)
{
	(void)state;
	last = (struct trace_frame){ .base_slot = 1 };
	for (size_t i = 0; i < COUNT; i++)
		bytecodes[i] = (struct bytecode){ .op = BC_KSHORT, .a = 9 };
	memset(child_bytes, 0, sizeof(child_bytes));
	put_trace(1, 0, PROTO, PROTO + BYTECODES + LOOP * BYTECODE_SIZE);
	put_trace(2, 0, OTHER, OTHER + BYTECODES);
	put_trace(3, 2, PROTO, PROTO + BYTECODES + LOOP * BYTECODE_SIZE);
	vm.layout = traces[1].layout;
	make_bytecodes(&proto, &vm.layout, PROTO, proto_bytes, BYTECODES, bytecodes, COUNT);
	proto.flags = 0;
	reading = (struct heap_reading){ .layout = &vm.layout, .ref = 4 };
	return 0;
}

static void put_bytecode(uint32_t position, struct bytecode bytecode)
{
	bytecodes[position] = bytecode;
	make_bytecodes(&proto, &vm.layout, PROTO, proto_bytes, BYTECODES, bytecodes, COUNT);
}

/* The trace returns from a call at that position. */
static void put_return(uint32_t number, uint32_t ref, uint32_t to, uint32_t call)
{
	const uint64_t pc = pc_of(call + 1);

	put_object(&traces[number], RETURNED_TO, IRT_PROTO, to);
	put_ir(&traces[number], RETURN_PC, IR_KPTR, 0, (uint16_t)pc, (uint16_t)(pc >> 16));
	put_ir(&traces[number], ref, IR_RETF, 0, RETURNED_TO, RETURN_PC);
}

static void put_link(uint32_t number, uint32_t to, enum trace_linktype type)
{
	trace_put(&traces[number], vm.layout.GCtrace_link, to, 2);
	trace_put(&traces[number], vm.layout.GCtrace_linktype, type, 1);
}

static bool is_found(uint32_t number)
{
	return heap_compiled_find(&reading, address_of(number), &proto, &compiled);
}

static bool is_named(uint32_t slot, const char *expected)
{
	const char *name;

	if (!heap_compiled_name(&reading, &compiled, slot, &name))
		return false;
	assert_string_equal(name, expected);
	return true;
}

static void a_loop_leaves_its_slots_in_memory(void **state)
{
	(void)state;
	assert_true(is_found(1));
	assert_true(is_named(WHOLE, "whole"));
	assert_true(is_named(BLOCK, "block"));
	assert_false(is_named(BLOCK + 1, NULL));
	assert_false(is_found(2)); /* another function's */
	assert_false(is_found(TRACES));
	put_trace(1, 0, PROTO, PROTO + BYTECODES + COUNT * BYTECODE_SIZE);
	assert_false(is_found(1));
}

static void what_is_assigned_may_be_in_a_register(void **state)
{
	(void)state;
	assert_true(is_found(1));
	put_bytecode(DECLARED, (struct bytecode){ .op = BC_KSHORT, .a = BLOCK });
	assert_true(is_named(WHOLE, "whole"));
	assert_false(is_named(BLOCK, NULL));
	put_bytecode(COUNT - 1, (struct bytecode){ .op = BC_KSHORT, .a = WHOLE });
	assert_false(is_named(WHOLE, NULL));
}

static void what_a_closure_assigns_may_be_in_a_register(void **state)
{
	const uint16_t upvalues[] = { LOCAL_OF_PARENT | NEVER_ASSIGNED | WHOLE, LOCAL_OF_PARENT | BLOCK };
	const uint32_t list = CHILD + UPVALUES_AT;

	(void)state;
	assert_true(is_found(1));
	proto_bytes[SIZEKGC_AT] = 1;
	child_bytes[vm.layout.GChead_gct] = (uint8_t)GCT_PROTO;
	child_bytes[SIZEUV_AT] = 2;
	memcpy(child_bytes + UV_AT, &list, sizeof(list));
	memcpy(child_bytes + UPVALUES_AT, upvalues, sizeof(upvalues));
	assert_true(is_named(BLOCK, "block"));
	proto.flags = PROTO_CHILD;
	assert_true(is_named(WHOLE, "whole"));
	assert_false(is_named(BLOCK, NULL));
}

/* The frame below was whole when it called. */
static void a_trace_may_return_to_the_function(void **state)
{
	(void)state;
	put_return(3, TRACE_REF_BASE + 2, PROTO, CALL);
	assert_true(is_found(3));
	assert_true(is_named(WHOLE, "whole"));
	/* From there on it may leave a block. */
	assert_false(is_named(BLOCK, NULL));
	/* A variable that gets what the call returns is not declared at the call. */
	put_return(3, TRACE_REF_BASE + 2, PROTO, DECLARED - 1);
	assert_true(is_found(3));
	assert_false(is_named(WHOLE, NULL));
	/* The first of several calls decides. */
	put_return(3, TRACE_REF_BASE + 2, PROTO, CALL);
	put_ir(&traces[3], RETURNED_TO + 1, IR_KPTR, 0, (uint16_t)pc_of(DECLARED), 0);
	put_ir(&traces[3], TRACE_REF_BASE + 3, IR_RETF, 0, RETURNED_TO, RETURNED_TO + 1);
	assert_true(is_found(3));
	assert_false(is_named(WHOLE, NULL));
	put_return(3, TRACE_REF_BASE + 3, OTHER, CALL);
	put_return(3, TRACE_REF_BASE + 2, OTHER, CALL);
	assert_false(is_found(3));
	/* To where is unknown. */
	put_return(3, TRACE_REF_BASE + 2, PROTO, CALL);
	put_ir(&traces[3], TRACE_REF_BASE + 3, IR_RETF, 0, TRACE_REF_BASE, RETURN_PC);
	assert_false(is_found(3));
}

/* Also where one that leads to it has returned. */
static void a_side_trace_has_the_starts_of_those_before_it(void **state)
{
	(void)state;
	put_return(2, TRACE_REF_BASE + 2, PROTO, CALL);
	assert_true(is_found(3));
	assert_true(is_named(WHOLE, "whole"));
	put_trace(2, 1, OTHER, OTHER + BYTECODES);
	assert_true(is_found(3));
	assert_int_equal(compiled.startpc, pc_of(LOOP));
	put_trace(1, 1, PROTO, pc_of(LOOP)); /* its parent is none */
	assert_false(is_found(3));
}

static void a_side_trace_may_leave_a_block(void **state)
{
	(void)state;
	put_trace(2, 1, PROTO, pc_of(LOOP));
	assert_true(is_found(2));
	assert_true(is_named(WHOLE, "whole"));
	assert_false(is_named(BLOCK, NULL));
	/* "goto" may lead to where it is declared anew. */
	put_bytecode(COUNT - 1, (struct bytecode){ .op = BC_JMP, .c = 0xf5, .b = 0x7f });
	assert_false(is_named(WHOLE, NULL));
}

/* "repeat ... until true" is none; nor is what goes on after a call. */
static void a_root_trace_without_a_loop_may_leave_a_block(void **state)
{
	const struct layout *layout = &vm.layout;
	const uint32_t to_last = 0x8003u << 16;

	(void)state;
	trace_put(&traces[1], layout->GCtrace_startins, (uint64_t)bytecode_number(layout, BC_CALL), 4);
	assert_true(is_found(1));
	assert_false(is_named(BLOCK, NULL));
	assert_true(is_named(WHOLE, "whole"));
	trace_put(&traces[1], layout->GCtrace_startins, (uint32_t)bytecode_number(layout, BC_LOOP) | to_last,
		  4);
	assert_true(is_found(1));
	assert_false(is_named(BLOCK, NULL));
	put_bytecode(LOOP + 3, (struct bytecode){ .op = BC_JMP, .c = 0xfc, .b = 0x7f });
	assert_true(is_found(1));
	assert_true(is_named(BLOCK, "block"));
}

/* jit_base is stored before the next trace's number is. */
static void the_frame_of_the_next_trace_has_no_names(void **state)
{
	(void)state;
	put_link(1, 1, TRACE_LINK_LOOP);
	last.base_slot = 4;
	assert_true(is_found(1));
	put_link(1, 1, TRACE_LINK_UPREC);
	assert_false(is_found(1));
	put_link(1, 2, TRACE_LINK_ROOT);
	assert_true(is_found(1)); /* another function's */
	put_link(1, TRACES, TRACE_LINK_ROOT);
	assert_false(is_found(1));
	/* The same frame goes on. */
	last.base_slot = 1;
	put_link(1, 1, TRACE_LINK_UPREC);
	assert_true(is_found(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_loop_leaves_its_slots_in_memory, begin),
		cmocka_unit_test_setup(what_is_assigned_may_be_in_a_register, begin),
		cmocka_unit_test_setup(what_a_closure_assigns_may_be_in_a_register, begin),
		cmocka_unit_test_setup(a_trace_may_return_to_the_function, begin),
		cmocka_unit_test_setup(a_side_trace_has_the_starts_of_those_before_it, begin),
		cmocka_unit_test_setup(a_side_trace_may_leave_a_block, begin),
		cmocka_unit_test_setup(a_root_trace_without_a_loop_may_leave_a_block, begin),
		cmocka_unit_test_setup(the_frame_of_the_next_trace_has_no_names, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
