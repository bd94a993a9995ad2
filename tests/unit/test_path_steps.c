/* SPDX-License-Identifier: MIT */
/* Which bytecodes may be recorded after a bytecode, and which ways lead from one snapshot to the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_proto.h"
#include "tests/unit/made_up_trace.h"
#include "unwind/jit/path_frames.h"
#include "unwind/jit/path_search.h"
#include "unwind/jit/path_steps.h"

enum {
	MAIN = 0x50000,
	CALLEE = 0x60000,
	OTHER = 0x70000,
	AFTER_HEADER = 16, /* where bytecodes begin */
	BYTECODES_MAX = 32,
	VISITS = 10000,
	BASE_SLOT = 2,
	CALL_SLOT = 3, /* A of the calls here */
	START = 0,     /* the frame of MAIN */
	TRACES = 4,
	FORWARDS = 4, /* the jumps here */
	MANY_STEPS = 40,
};

static const struct layout layout = { .gc64 = true, .bytecode = BYTECODE_V21 };

/* MAIN runs in the start frame; CALLEE and OTHER can be called. */
static struct proto protos[3];
static uint8_t bytes[3][AFTER_HEADER + BYTECODES_MAX * BYTECODE_SIZE];
static struct path_frames frames;
static struct trace_calls calls;
static struct trace root_trace;
static const struct trace *traces[TRACES];
static const struct trace_numbers numbers = { traces, TRACES };
static const struct trace no_trace;
static struct path_gap gap;
static struct path_way way;
static struct path_steps steps;
static struct lua_objects *objects;

static unsigned visits_left;
static struct function_object in_upvalue; /* what each upvalue holds, if it has an address */
static struct function_object stored;     /* by the trace */
static uint64_t empty_upvalue_of;         /* a function whose upvalues hold none */
static uint64_t upvalue_of;               /* the function whose upvalue was asked for */

INSTEAD_OF(lua_objects_upvalue);
const struct function_object *__wrap_lua_objects_upvalue(const struct lua_objects *all, uint64_t function,
							 unsigned index)
{
	(void)all;
	(void)index;
	upvalue_of = function;
	return in_upvalue.address && function != empty_upvalue_of ? &in_upvalue : NULL;
}

INSTEAD_OF(lua_objects_function);
const struct function_object *__wrap_lua_objects_function(const struct lua_objects *all, uint64_t address)
{
	(void)all;
	return address == stored.address ? &stored : NULL;
}

static struct path_context context(void)
{
	visits_left = VISITS;
	return (struct path_context){
		.visits_left = &visits_left,
		.numbers = &numbers,
		.trace = &no_trace,
		.layout = &layout,
		.objects = objects,
		.calls = &calls,
		.frames = &frames,
	};
}

static int begin(void **state)
{
	static const struct bytecode callee[] = { { BC_FUNCF, .a = 4 },
						  { .op = BC_MOV },
						  { BC_RET0, .c = 1 } };

	(void)state;
	make_bytecodes(&protos[1], &layout, CALLEE, bytes[1], AFTER_HEADER, callee, 3);
	make_bytecodes(&protos[2], &layout, OTHER, bytes[2], AFTER_HEADER, callee, 3);
	calls = (struct trace_calls){ 0 };
	in_upvalue = (struct function_object){ 0 };
	upvalue_of = 0;
	empty_upvalue_of = UINT64_MAX;
	memset(traces, 0, sizeof(traces));
	gap = (struct path_gap){ 0 };
	way = (struct path_way){ 0 };
	frames = (struct path_frames){ 0 };
	path_frames_add(&frames,
			&(struct path_frame){ .proto = &protos[0], .up = -1, .base_slot = BASE_SLOT });
	objects = lua_objects_new();
	assert_non_null(objects);
	return 0;
}

static int end(void **state)
{
	(void)state;
	path_frames_clear(&frames);
	lua_objects_free(objects);
	return 0;
}

static void set_main(const struct bytecode *bytecodes, uint32_t count)
{
	assert_in_range(count, 1, BYTECODES_MAX);
	make_bytecodes(&protos[0], &layout, MAIN, bytes[0], AFTER_HEADER, bytecodes, count);
}

#define SET_MAIN(...) \
	set_main((const struct bytecode[]){ __VA_ARGS__ }, \
		 sizeof((const struct bytecode[]){ __VA_ARGS__ }) / sizeof(struct bytecode))

/* The pc of a bytecode of one of the three functions. */
static uint64_t pc_of(unsigned proto, unsigned index)
{
	return protos[proto].bc + index * BYTECODE_SIZE;
}

static void go(int32_t frame, uint64_t pc)
{
	way.points[way.count++] = (struct path_point){ .frame = frame, .pc = pc };
}

static void find(void)
{
	struct path_context all = context();

	path_steps_find(&all, &gap, &way, &steps);
}

/* The steps from one bytecode of MAIN, as if recording had begun there. */
static void find_from(unsigned index)
{
	way.count = 0;
	go(START, pc_of(0, index));
	find();
}

static void expect_step(size_t index, int32_t frame, uint64_t pc, unsigned cost)
{
	assert_in_range(index, 0, steps.count - 1);
	assert_int_equal(steps.step[index].point.frame, frame);
	assert_int_equal(steps.step[index].point.pc, pc);
	assert_int_equal(steps.step[index].cost, cost);
}

/* The step enters this function, called from the start frame at pc. */
static const struct path_frame *expect_call(size_t index, unsigned proto, uint64_t pc, unsigned cost)
{
	const struct path_frame *frame;

	assert_in_range(index, 0, steps.count - 1);
	frame = &frames.frame[steps.step[index].point.frame];
	assert_ptr_equal(frame->proto, &protos[proto]);
	assert_int_equal(frame->up, START);
	assert_int_equal(frame->call_pc, pc);
	assert_false(frame->by_continuation);
	expect_step(index, steps.step[index].point.frame, pc_of(proto, 0), cost);
	return frame;
}

/*---- Jumps ----*/

static void most_bytecodes_lead_to_the_next(void **state)
{
	(void)state;
	SET_MAIN({ .op = BC_FUNCF }, { .op = BC_MOV }, { .op = BC_ADDVV },
		 { BC_LOOP, .b = JUMP, .c = FORWARDS }, { .op = BC_TGETS });
	for (unsigned i = 0; i < 5; i++) {
		find_from(i);
		assert_int_equal(steps.count, 1);
		expect_step(0, START, pc_of(0, i + 1), 0);
		assert_int_equal(steps.step[0].checks, 0);
	}
	/* There is none outside the function. */
	find_from(5);
	assert_int_equal(steps.count, 0);
}

static void jumps_lead_to_their_targets(void **state)
{
	(void)state;
	SET_MAIN({ .op = BC_MOV }, { BC_JMP, .b = JUMP, .c = FORWARDS },
		 { BC_UCLO, .b = JUMP, .c = FORWARDS }, { BC_ISNEXT, .b = JUMP, .c = FORWARDS },
		 { BC_JMP, .b = JUMP - 1, .c = UINT8_MAX - 3 });
	for (unsigned i = 1; i < 4; i++) {
		find_from(i);
		assert_int_equal(steps.count, 1);
		expect_step(0, START, pc_of(0, i + 1 + FORWARDS), 0);
	}
	/* Backwards, to the first one. */
	find_from(4);
	assert_int_equal(steps.count, 1);
	expect_step(0, START, pc_of(0, 1), 0);
}

static void iterators_go_on_or_end(void **state)
{
	(void)state;
	SET_MAIN({ BC_ITERL, .b = JUMP, .c = FORWARDS }, { BC_IITERL, .b = JUMP, .c = FORWARDS });
	for (unsigned i = 0; i < 2; i++) {
		find_from(i);
		assert_int_equal(steps.count, 2);
		expect_step(0, START, pc_of(0, i + 1 + FORWARDS), 0);
		expect_step(1, START, pc_of(0, i + 1), 0);
	}
}

/* A guarded comparison takes a snapshot: one between two snapshots is unlikely. */
static void comparisons_and_loops_have_two_targets(void **state)
{
	static const enum bytecode_op comparisons[] = { BC_ISLT, BC_ISGT, BC_ISEQV, BC_ISNEP };
	static const enum bytecode_op loops[] = { BC_FORI, BC_JFORI, BC_FORL, BC_IFORL };
	struct path_context all = context();
	uint64_t pcs[2];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		SET_MAIN({ .op = BC_MOV }, { .op = comparisons[i] }, { BC_JMP, .b = JUMP, .c = FORWARDS });
		find_from(1);
		assert_int_equal(steps.count, 2);
		expect_step(0, START, pc_of(0, 3), COST_COMPARISON);
		expect_step(1, START, pc_of(0, 3 + FORWARDS), COST_COMPARISON);
		assert_true(path_branch(&all, &way.points[0], pcs));
		assert_int_equal(pcs[0], pc_of(0, 3));
		assert_int_equal(pcs[1], pc_of(0, 3 + FORWARDS));
		SET_MAIN({ .op = BC_MOV }, { loops[i], .b = JUMP, .c = FORWARDS });
		find_from(1);
		assert_int_equal(steps.count, 2);
		expect_step(0, START, pc_of(0, 2), COST_COMPARISON);
		expect_step(1, START, pc_of(0, 2 + FORWARDS), COST_COMPARISON);
		assert_true(path_branch(&all, &way.points[0], pcs));
		assert_int_equal(pcs[1], pc_of(0, 2 + FORWARDS));
		/* What is behind a comparison is its jump, or it is none. */
		SET_MAIN({ .op = comparisons[i] }, { .op = BC_MOV });
		find_from(0);
		assert_int_equal(steps.count, 1);
		assert_false(path_branch(&all, &way.points[0], pcs));
		SET_MAIN({ .op = comparisons[i] });
		find_from(0);
		assert_false(path_branch(&all, &way.points[0], pcs));
	}
	/* Loops that no trace has taken over decide nothing. */
	SET_MAIN({ BC_LOOP, .b = JUMP, .c = FORWARDS }, { .op = BC_ISTC });
	find_from(0);
	assert_false(path_branch(&all, &way.points[0], pcs));
	find_from(1);
	assert_false(path_branch(&all, &way.points[0], pcs));
}

static bool may_guard(unsigned index, enum ir_op op)
{
	const struct path_context all = context();
	const struct path_point point = { .frame = START, .pc = pc_of(0, index) };

	return path_branch_may_guard(&all, &point, op);
}

static void loops_are_guarded_by_order(void **state)
{
	(void)state;
	SET_MAIN({ .op = BC_ISEQV }, { BC_JMP, .b = JUMP, .c = FORWARDS },
		 { BC_FORI, .b = JUMP, .c = FORWARDS }, { .op = BC_MOV });
	assert_true(may_guard(0, IR_LT));
	assert_true(may_guard(0, IR_NE));
	assert_false(may_guard(0, IR_UREFC));
	assert_true(may_guard(2, IR_LT));
	assert_true(may_guard(2, IR_UGT));
	assert_false(may_guard(2, IR_EQ));
	/* Nor is there any without a bytecode. */
	assert_false(may_guard(4, IR_LT));
}

static void a_bytecode_that_a_trace_replaced_is_the_one_before(void **state)
{
	const struct bytecode jump = { BC_ITERL, .b = JUMP, .c = FORWARDS };
	static const enum bytecode_op replaced[] = { BC_JFORL, BC_JITERL, BC_JLOOP };

	(void)state;
	root_trace.startins = bytecode_word(&layout, &jump);
	for (unsigned i = 0; i < 3; i++) {
		traces[2] = &root_trace;
		SET_MAIN({ replaced[i], .c = 2 }, { replaced[i], .c = 3 }, { replaced[i], .c = TRACES },
			 { BC_JMP, .c = 2, .b = JUMP });
		find_from(0);
		assert_int_equal(steps.count, 2);
		expect_step(0, START, pc_of(0, 1 + FORWARDS), 0);
		/* Which one that was is not known. */
		find_from(1);
		assert_int_equal(steps.count, 0);
		find_from(2);
		assert_int_equal(steps.count, 0);
	}
}

/*---- Tests ----*/

/* The steps of the test at the end of MAIN, after all that is before it. */
static void find_test(unsigned count)
{
	way.count = 0;
	for (unsigned i = 0; i < count; i++)
		go(START, pc_of(0, i));
	find();
}

enum truth { UNKNOWN, FALSE, TRUE };

/* The test jumps (to the next bytecode, which is the jump) if the slot is as it wants. */
static void expect_test(unsigned count, enum truth truth, bool jumps_if_true)
{
	bool jumps = truth == UNKNOWN || (truth == TRUE) == jumps_if_true;
	bool falls = truth == UNKNOWN || (truth == TRUE) != jumps_if_true;

	assert_int_equal(steps.count, (size_t)jumps + falls);
	if (falls)
		expect_step(0, START, pc_of(0, count + 1), 0);
	if (jumps)
		expect_step(falls, START, pc_of(0, count), 0);
}

static void tests_of_constants_have_one_way(void **state)
{
	static const struct {
		struct bytecode set;
		enum truth truth;
	} known[] = {
		{ { BC_KPRI, .a = 5, .c = 0 }, FALSE },
		{ { BC_KPRI, .a = 5, .c = 1 }, FALSE },
		{ { BC_KPRI, .a = 5, .c = 2 }, TRUE },
		{ { BC_KSTR, .a = 5 }, TRUE },
		{ { BC_KCDATA, .a = 5 }, TRUE },
		{ { BC_KSHORT, .a = 5 }, TRUE },
		{ { BC_KNUM, .a = 5 }, TRUE },
		{ { BC_FNEW, .a = 5 }, TRUE },
		{ { BC_TNEW, .a = 5 }, TRUE },
		{ { BC_TDUP, .a = 5 }, TRUE },
		{ { BC_MOV, .a = 5, .c = 1 }, UNKNOWN },
		{ { BC_KSTR, .a = 4 }, UNKNOWN },
		{ { BC_KNIL, .a = 5, .c = 6 }, UNKNOWN },
	};
	static const struct {
		enum bytecode_op op;
		bool jumps_if_true;
	} tests[] = { { BC_IST, true }, { BC_ISTC, true }, { BC_ISF, false }, { BC_ISFC, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		for (size_t j = 0; j < 4; j++) {
			const struct bytecode test = { tests[j].op, .a = 9, .c = 5 },
					      jump = { BC_JMP, .b = JUMP };

			SET_MAIN(known[i].set, { BC_MOV, .a = 6, .c = 5 }, test, jump);
			find_test(3);
			expect_test(3, known[i].truth, tests[j].jumps_if_true);
			/* Set again, to what is not known. */
			SET_MAIN(known[i].set, { BC_UGET, .a = 5 }, test, jump);
			find_test(3);
			expect_test(3, UNKNOWN, tests[j].jumps_if_true);
			/* A call may change its own slots and those above. */
			SET_MAIN(known[i].set, { BC_CALL, .a = 5 }, test, jump);
			find_test(3);
			expect_test(3, UNKNOWN, tests[j].jumps_if_true);
			SET_MAIN(known[i].set, { BC_CALL, .a = 6 }, test, jump);
			find_test(3);
			expect_test(3, known[i].truth, tests[j].jumps_if_true);
			SET_MAIN(known[i].set, test, jump);
			find_from(1);
			expect_test(2, UNKNOWN, tests[j].jumps_if_true);
		}
}

static void tests_of_copies_have_one_way(void **state)
{
	(void)state;
	SET_MAIN({ BC_KPRI, .a = 5, .c = 1 }, { BC_MOV, .a = 6, .c = 5 }, { BC_IST, .a = 9, .c = 6 },
		 { BC_JMP, .b = JUMP });
	find_test(3);
	expect_test(3, FALSE, true);
}

/* CALLEE tests an argument, of which MAIN has passed one to what it read from an upvalue. */
static void find_argument_of(enum bytecode_op call, uint8_t flags, unsigned slot)
{
	const struct path_frame called = { .proto = &protos[1],
					   .up = call == BC_CALLT ? -1 : START,
					   .call_pc = call == BC_CALLT ? 0 : pc_of(0, 2) };
	int32_t frame = path_frames_add(&frames, &called);
	const struct bytecode callee[] = { { BC_IST, .c = (uint8_t)slot }, { BC_JMP, .b = JUMP } };

	SET_MAIN({ BC_UGET, .a = 5 }, { BC_KPRI, .a = (uint8_t)(5 + frame_slots(layout.gc64)), .c = 1 },
		 { call, .a = 5, .c = 2 });
	make_bytecodes(&protos[1], &layout, CALLEE, bytes[1], AFTER_HEADER, callee, 2);
	protos[1].flags = flags;
	protos[1].numparams = 1;
	way.count = 0;
	for (unsigned i = 0; i < 3; i++)
		go(START, pc_of(0, i));
	go(frame, pc_of(1, 0));
	find();
}

static void find_argument(unsigned slot)
{
	find_argument_of(BC_CALL, 0, slot);
}

static void tests_of_arguments_have_one_way(void **state)
{
	(void)state;
	in_upvalue = (struct function_object){ .address = 0x9000, .proto = &protos[1] };
	find_argument(0);
	assert_int_equal(steps.count, 1);
	assert_int_equal(steps.step[0].point.pc, pc_of(1, 2));
	find_argument(1);
	assert_int_equal(steps.count, 2);
	find_argument_of(BC_CALLT, 0, 0);
	assert_int_equal(steps.count, 1);
	assert_int_equal(steps.step[0].point.pc, pc_of(1, 2));
	find_argument_of(BC_CALLM, 0, 0);
	assert_int_equal(steps.count, 2);
	/* Of a vararg function, those of its parameters. */
	find_argument_of(BC_CALL, PROTO_VARARG, 0);
	assert_int_equal(steps.count, 1);
	find_argument_of(BC_CALL, PROTO_VARARG, 1);
	assert_int_equal(steps.count, 2);
}

/* The object that is called is the first argument of its __call. */
static void arguments_of_a_called_object_are_others(void **state)
{
	(void)state;
	in_upvalue = (struct function_object){ .address = 0x9000, .proto = &protos[2] };
	find_argument(0);
	assert_int_equal(steps.count, 2);
	in_upvalue.address = 0;
	find_argument(0);
	assert_int_equal(steps.count, 2);
}

/* A metamethod that is not on the way may have set it: the trace checks that with the upvalue's address. */
static void a_variable_of_closures_may_be_set_unseen(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		SET_MAIN({ BC_KPRI, .a = 5, .c = 1 }, { BC_TGETS, .a = 6 }, { BC_IST, .c = 5 },
			 { BC_JMP, .b = JUMP });
		calls.upvalues[0].ref = TRACE_REF_BASE + 1;
		calls.upvalue_count = i;
		gap.end_ref = TRACE_REF_BASE + 2;
		protos[0].flags = PROTO_CHILD;
		find_test(3);
		expect_test(3, i ? UNKNOWN : FALSE, true);
		protos[0].flags = 0;
		find_test(3);
		expect_test(3, FALSE, true);
		/* Not before the address was there. */
		protos[0].flags = PROTO_CHILD;
		gap.end_ref = TRACE_REF_BASE + 1;
		find_test(3);
		expect_test(3, FALSE, true);
		protos[0].flags = 0;
	}
}

static void comparisons_of_types_have_one_way(void **state)
{
	static const struct {
		struct bytecode set, comparison;
		enum truth jumps;
	} known[] = {
		{ { BC_KSHORT, .a = 5 }, { BC_ISEQS, .a = 5 }, FALSE },
		{ { BC_KNUM, .a = 5 }, { BC_ISNES, .a = 5 }, TRUE },
		{ { BC_KPRI, .a = 5, .c = 1 }, { BC_ISEQP, .a = 5, .c = 1 }, TRUE },
		{ { BC_KPRI, .a = 5, .c = 1 }, { BC_ISNEP, .a = 5, .c = 1 }, FALSE },
		{ { BC_KPRI, .a = 5, .c = 2 }, { BC_ISEQP, .a = 5, .c = 1 }, FALSE },
		{ { BC_TNEW, .a = 5 }, { BC_ISEQP, .a = 5 }, FALSE },
		{ { BC_TNEW, .a = 5 }, { BC_ISNEN, .a = 5 }, TRUE },
		{ { BC_KSHORT, .a = 5 }, { BC_ISEQN, .a = 5 }, UNKNOWN },
		{ { BC_KSTR, .a = 5 }, { BC_ISEQS, .a = 5 }, UNKNOWN },
		{ { BC_KCDATA, .a = 5 }, { BC_ISEQS, .a = 5 }, UNKNOWN },
		{ { BC_UGET, .a = 5 }, { BC_ISEQS, .a = 5 }, UNKNOWN },
		{ { BC_KPRI, .a = 5 }, { BC_ISLT, .a = 5, .c = 5 }, UNKNOWN },
		{ { BC_KPRI, .a = 5 }, { BC_ISEQV, .a = 5, .c = 5 }, TRUE },
		{ { BC_TNEW, .a = 5 }, { BC_ISNEV, .a = 5, .c = 5 }, UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const bool is_known = known[i].jumps != UNKNOWN;

		SET_MAIN(known[i].set, known[i].comparison, { BC_JMP, .b = JUMP, .c = FORWARDS });
		find_test(2);
		assert_int_equal(steps.count, is_known ? 1 : 2);
		expect_step(0, START, pc_of(0, 3 + (known[i].jumps == TRUE ? FORWARDS : 0)),
			    is_known ? 0 : COST_COMPARISON);
	}
}

/*
 * The steps after some bytecodes of MAIN by a trace whose snapshots keep its slot 0: #0 nothing, #1 what was
 * read before it, #2 a string. With GCproto.k at the start of MAIN, its first object is that string.
 */
static void find_after_snapshot(unsigned count, uint32_t snapshot, uint8_t type)
{
	enum { READ = TRACE_REF_BASE + 1, STRING = MADE_UP_NK, TEXT = 0x4000, GUARD = 0x80 };
	struct made_up_trace made;
	struct path_context all = context();
	const uint32_t read = BASE_SLOT << 24 | READ, string = BASE_SLOT << 24 | STRING;

	made_up_trace_begin(&made, true);
	made.layout.bytecode = layout.bytecode;
	made.layout.GCproto_k = 0;
	memcpy(bytes[0], &(uint64_t){ MAIN + AFTER_HEADER }, sizeof(uint64_t));
	memcpy(bytes[0] + sizeof(uint64_t), &(uint64_t){ TEXT }, sizeof(uint64_t));
	put_object(&made, STRING, IRT_STR, TEXT);
	put_ir(&made, READ, IR_SLOAD, type | GUARD, BASE_SLOT, 0);
	put_snapshot(&made, TRACE_REF_BASE, 0, NULL, 0);
	put_map_word(&made, 0);
	put_map_word(&made, 0);
	put_snapshot(&made, READ + 1, 0, &read, 1);
	put_map_word(&made, 0);
	put_map_word(&made, 0);
	put_snapshot(&made, READ + 1, 0, &string, 1);
	put_map_word(&made, 0);
	put_map_word(&made, 0);
	all.trace = &made.trace;
	all.layout = &made.layout;
	gap = (struct path_gap){ .snapshot = snapshot, .ref = TRACE_REF_BASE, .end_ref = READ + 1 };
	way.count = 0;
	for (unsigned i = 0; i < count; i++)
		go(START, pc_of(0, i));
	path_steps_find(&all, &gap, &way, &steps);
}

static void find_at_snapshot(uint32_t snapshot, uint8_t type)
{
	find_after_snapshot(1, snapshot, type);
}

/* Its type is what the snapshot, or at the trace's start the first read of the slot, tells. */
static void types_at_a_snapshot_decide(void **state)
{
	(void)state;
	SET_MAIN({ BC_IST, .c = 0 }, { BC_JMP, .b = JUMP });
	for (uint32_t snapshot = 0; snapshot < 2; snapshot++) {
		find_at_snapshot(snapshot, IRT_FALSE);
		expect_test(1, FALSE, true);
		find_at_snapshot(snapshot, IRT_NIL);
		expect_test(1, FALSE, true);
		find_at_snapshot(snapshot, IRT_INT);
		expect_test(1, TRUE, true);
	}
	SET_MAIN({ BC_IST, .c = 1 }, { BC_JMP, .b = JUMP });
	find_at_snapshot(1, IRT_FALSE);
	expect_test(1, UNKNOWN, true);
}

static void a_variable_of_a_snapshot_may_be_set_unseen(void **state)
{
	(void)state;
	SET_MAIN({ BC_TGETS, .a = 6 }, { BC_IST, .c = 0 }, { BC_JMP, .b = JUMP });
	find_after_snapshot(2, 1, IRT_FALSE);
	expect_test(2, FALSE, true);
	protos[0].flags = PROTO_CHILD;
	calls.upvalues[0].ref = TRACE_REF_BASE;
	calls.upvalue_count = 1;
	find_after_snapshot(2, 1, IRT_FALSE);
	expect_test(2, UNKNOWN, true);
}

static void types_at_a_snapshot_decide_comparisons(void **state)
{
	(void)state;
	SET_MAIN({ BC_ISEQN, .a = 0 }, { BC_JMP, .b = JUMP, .c = FORWARDS });
	find_at_snapshot(1, IRT_INT);
	assert_int_equal(steps.count, 2);
	find_at_snapshot(1, IRT_TAB);
	assert_int_equal(steps.count, 1);
	expect_step(0, START, pc_of(0, 2), 0);
}

static void constant_strings_are_equal_by_their_address(void **state)
{
	(void)state;
	for (uint8_t object = 0; object < 2; object++) {
		SET_MAIN({ BC_ISEQS, .a = 0, .c = object }, { BC_JMP, .b = JUMP, .c = FORWARDS });
		find_at_snapshot(2, IRT_NIL);
		assert_int_equal(steps.count, 1);
		expect_step(0, START, pc_of(0, object ? 2 : 2 + FORWARDS), 0);
	}
	/* Of any other string, the trace has a guard. */
	find_at_snapshot(1, IRT_STR);
	assert_int_equal(steps.count, 2);
}

/* MAIN tests what CALLEE, which it has called, returned. */
static void find_returned_in(enum bytecode_op call, uint8_t slot, const struct bytecode *callee,
			     uint32_t count)
{
	const struct path_frame called = { .proto = &protos[1], .up = START, .call_pc = pc_of(0, 0) };
	int32_t frame = path_frames_add(&frames, &called);

	SET_MAIN({ call, .a = 5 }, { BC_IST, .c = slot }, { BC_JMP, .b = JUMP });
	make_bytecodes(&protos[1], &layout, CALLEE, bytes[1], AFTER_HEADER, callee, count);
	way.count = 0;
	go(START, pc_of(0, 0));
	for (uint32_t i = 0; i < count; i++)
		go(frame, pc_of(1, i));
	go(START, pc_of(0, 1));
	find();
}

static void find_returned(const struct bytecode *callee, uint32_t count)
{
	find_returned_in(BC_CALL, 5, callee, count);
}

static void tests_of_returned_constants_have_one_way(void **state)
{
	(void)state;
	find_returned((const struct bytecode[]){ { BC_KPRI, .a = 7, .c = 2 }, { BC_RET1, .a = 7, .c = 2 } },
		      2);
	expect_test(2, TRUE, true);
	find_returned((const struct bytecode[]){ { BC_KPRI, .a = 7, .c = 1 }, { BC_RET1, .a = 7, .c = 2 } },
		      2);
	expect_test(2, FALSE, true);
	find_returned((const struct bytecode[]){ { BC_KPRI, .a = 6, .c = 1 }, { BC_RET1, .a = 7, .c = 2 } },
		      2);
	expect_test(2, UNKNOWN, true);
	find_returned((const struct bytecode[]){ { BC_KPRI, .a = 7, .c = 2 }, { BC_RET0, .c = 1 } }, 2);
	expect_test(2, FALSE, true);
	find_returned((const struct bytecode[]){ { BC_KPRI, .a = 7, .c = 2 }, { BC_RET, .a = 7, .c = 3 } },
		      2);
	expect_test(2, UNKNOWN, true);
}

/* What a call for its effect, or a metamethod, returned is not in the slot. */
static void tests_after_a_call_may_be_of_another_slot(void **state)
{
	const struct bytecode callee[] = { { BC_KPRI, .a = 7, .c = 1 }, { BC_RET1, .a = 7, .c = 2 } };

	(void)state;
	find_returned_in(BC_CALLM, 5, callee, 2);
	expect_test(2, FALSE, true);
	find_returned_in(BC_CALL, 4, callee, 2);
	expect_test(2, UNKNOWN, true);
	find_returned_in(BC_TGETS, 5, callee, 2);
	expect_test(2, UNKNOWN, true);
}

/*---- Calls ----*/

static void set_call(void)
{
	SET_MAIN({ .op = BC_FUNCF }, { BC_CALL, .a = CALL_SLOT, .b = 1, .c = 1 }, { .op = BC_MOV });
}

/* Both functions are among the trace's constants. */
static void may_call_both(void)
{
	calls.callees[0] = &protos[1];
	calls.callees[1] = &protos[2];
	calls.callee_count = 2;
}

static void an_unknown_call_is_of_a_builtin(void **state)
{
	static const enum bytecode_op ops[] = { BC_CALL, BC_CALLM, BC_ITERC };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		SET_MAIN({ .op = ops[i] }, { .op = BC_MOV });
		calls.has_builtin = false;
		find_from(0);
		assert_int_equal(steps.count, 1);
		expect_step(0, START, pc_of(0, 1), COST_GUESSED_CALL);
		calls.has_builtin = true;
		find_from(0);
		assert_int_equal(steps.count, 1);
		expect_step(0, START, pc_of(0, 1), 0);
	}
}

/* BC_ITERN does the work of next(), whatever function the loop's body calls. */
static void a_loop_over_pairs_calls_nothing(void **state)
{
	(void)state;
	SET_MAIN({ .op = BC_ITERN, .a = CALL_SLOT, .b = 3, .c = 3 }, { BC_ITERL, .b = JUMP, .c = FORWARDS });
	calls.callees[0] = &protos[1];
	calls.callee_count = 1;
	find_from(0);
	assert_int_equal(steps.count, 1);
	expect_step(0, START, pc_of(0, 1), 0);
	calls.calls[0] = (struct trace_call){ pc_of(0, 0), &protos[1] };
	calls.call_count = 1;
	find_from(0);
	assert_int_equal(steps.count, 1);
	expect_step(0, START, pc_of(0, 1), 0);
}

static void a_call_that_a_snapshot_shows_is_likely(void **state)
{
	const struct path_frame *frame;

	(void)state;
	set_call();
	may_call_both();
	calls.calls[0] = (struct trace_call){ pc_of(0, 2), &protos[2] };
	calls.calls[1] = (struct trace_call){ pc_of(0, 1), &protos[1] };
	calls.call_count = 2;
	find_from(1);
	assert_int_equal(steps.count, 2);
	frame = expect_call(0, 1, pc_of(0, 1), 0);
	assert_int_equal(frame->base_slot, BASE_SLOT + CALL_SLOT + 2);
	assert_int_equal(frame->function, 0);
	expect_step(1, START, pc_of(0, 2), COST_UNEXPECTED_CALL + COST_GUESSED_CALL);
	/* A second one is unlikely. */
	calls.calls[0].pc = pc_of(0, 1);
	find_from(1);
	assert_int_equal(steps.count, 3);
	expect_call(0, 2, pc_of(0, 1), 0);
	expect_call(1, 1, pc_of(0, 1), COST_UNEXPECTED_CALL);
}

/* Other traces call it there, but what a trace calls is among its constants. */
static void a_call_of_what_is_no_constant_is_of_other_traces(void **state)
{
	(void)state;
	set_call();
	calls.callees[0] = &protos[0];
	calls.callee_count = 1;
	calls.calls[0] = (struct trace_call){ pc_of(0, 1), &protos[1] };
	calls.calls[1] = (struct trace_call){ pc_of(0, 1), &protos[2] };
	calls.call_count = 2;
	find_from(1);
	assert_int_equal(steps.count, 1);
	calls.callees[1] = &protos[2];
	calls.callee_count = 2;
	find_from(1);
	assert_int_equal(steps.count, 2);
	expect_call(0, 2, pc_of(0, 1), 0);
	/* There may be more constants than are known. */
	calls.is_incomplete = true;
	find_from(1);
	assert_int_equal(steps.count, 3);
}

enum { FUNCTION = 0x2000, UPVALUE = 3, UPVALUE_REF = 0x8010 };

/* MAIN calls what an upvalue holds, CALLEE, which the trace reads from memory. */
static void set_call_of_upvalue(void)
{
	SET_MAIN({ BC_UGET, .a = CALL_SLOT, .c = UPVALUE }, { BC_CALL, .a = CALL_SLOT, .b = 1, .c = 1 },
		 { .op = BC_MOV });
	frames.frame[START].function = FUNCTION;
	in_upvalue = (struct function_object){ .address = 0x1000, .proto = &protos[1] };
	calls.upvalues[0] = (struct trace_upvalue){ UPVALUE_REF, FUNCTION, UPVALUE };
	calls.upvalue_count = 1;
	gap.end_ref = UPVALUE_REF + 1;
	go(START, pc_of(0, 0));
	go(START, pc_of(0, 1));
}

/* An upvalue may hold another function by now. */
static void a_function_in_an_upvalue_is_called_if_it_is_a_constant(void **state)
{
	(void)state;
	set_call_of_upvalue();
	calls.callees[0] = &protos[0];
	calls.callees[1] = &protos[2];
	calls.callee_count = 2;
	find();
	assert_int_equal(steps.count, 1);
	expect_step(0, START, pc_of(0, 2), COST_GUESSED_CALL);
	calls.callees[0] = &protos[1];
	find();
	assert_int_equal(steps.count, 2);
	assert_int_equal(expect_call(0, 1, pc_of(0, 1), 0)->function, in_upvalue.address);
	/* There may be more constants than are known. */
	calls.callees[0] = &protos[0];
	calls.is_incomplete = true;
	find();
	assert_int_equal(steps.count, 2);
	expect_call(0, 1, pc_of(0, 1), 0);
}

/* So may it hold a builtin now: the call is then of the function that is checked next. */
static void a_builtin_in_an_upvalue_is_called_if_it_is_a_constant(void **state)
{
	static const struct function_object others = { .address = 0x3000 };
	static const struct function_object same = { .address = 0x1000 };

	(void)state;
	set_call_of_upvalue();
	may_call_both();
	in_upvalue.proto = NULL;
	calls.checks[0] = (struct trace_check){ .ref = 0x8001, .callee = &protos[2], .of = CHECK_OF_TABLE };
	calls.check_count = gap.end_check = 1;
	calls.has_builtin = true;
	calls.functions[0] = &others;
	calls.function_count = 1;
	find();
	assert_int_equal(steps.count, 2);
	expect_call(0, 2, pc_of(0, 1), 0);
	calls.functions[0] = &same;
	find();
	assert_int_equal(steps.count, 2);
	expect_call(0, 2, pc_of(0, 1), COST_UNEXPECTED_CALL);
	calls.functions[0] = &others;
	calls.is_incomplete = true;
	find();
	assert_int_equal(steps.count, 2);
	expect_call(0, 2, pc_of(0, 1), COST_UNEXPECTED_CALL);
}

/* LuaJIT reads an upvalue that is never set anew as a constant. */
static void what_is_called_by_a_constant_upvalue_is_certain(void **state)
{
	const struct trace_upvalue others[] = {
		{ UPVALUE_REF, FUNCTION, UPVALUE + 1 },
		{ UPVALUE_REF, FUNCTION + 8, UPVALUE },
		{ UPVALUE_REF + 1, FUNCTION, UPVALUE },
	};

	(void)state;
	set_call_of_upvalue();
	may_call_both();
	empty_upvalue_of = FUNCTION + 8;
	/* Of the next call; and what other traces call here. */
	calls.checks[0] = (struct trace_check){ .ref = 0x8001, .callee = &protos[2], .of = CHECK_OF_UPVALUE };
	calls.check_count = gap.end_check = 1;
	calls.calls[0] = (struct trace_call){ pc_of(0, 1), &protos[2] };
	calls.call_count = 1;
	for (unsigned i = 0; i < 3; i++) {
		calls.upvalues[0] = others[i];
		find();
		assert_int_equal(steps.count, 1);
		assert_int_equal(expect_call(0, 1, pc_of(0, 1), 0)->function, in_upvalue.address);
		assert_int_equal(steps.step[0].checks, 0);
	}
	/* If its prototype has many closures, there is a check. */
	calls.checks[1] = (struct trace_check){ .ref = 0x8002, .callee = &protos[1] };
	calls.checks[0].callee = NULL;
	calls.check_count = gap.end_check = 2;
	find();
	assert_int_equal(steps.count, 1);
	assert_int_equal(steps.step[0].checks, 2);
	/* It is read from memory, maybe by a function that is no constant, or by more than are known. */
	calls.checks[0].callee = &protos[2];
	calls.upvalues[0] = (struct trace_upvalue){ UPVALUE_REF, 0, UPVALUE };
	find();
	assert_in_range(steps.count, 2, PATH_STEPS_MAX);
	/* Or by a function whose upvalue is the same variable, as far as is known. */
	calls.upvalues[0] = others[1];
	empty_upvalue_of = UINT64_MAX;
	find();
	assert_in_range(steps.count, 2, PATH_STEPS_MAX);
	empty_upvalue_of = FUNCTION + 8;
	calls.upvalues[0] = others[0];
	calls.upvalue_count = TRACE_UPVALUES_MAX;
	find();
	assert_in_range(steps.count, 2, PATH_STEPS_MAX);
	calls.upvalue_count = 1;
	calls.store_count = TRACE_STORES_MAX;
	gap.ref = 0;
	find();
	assert_in_range(steps.count, 2, PATH_STEPS_MAX);
}

/* The trace need not read what it has stored itself, by the upvalue of another function. */
static void what_a_trace_has_stored_in_an_upvalue_is_called(void **state)
{
	(void)state;
	set_call_of_upvalue();
	may_call_both();
	calls.upvalue_count = 0;
	stored = (struct function_object){ .address = 0x3000, .proto = &protos[2] };
	calls.stores[0] = (struct trace_store){ { UPVALUE_REF, FUNCTION + 8, 0 }, stored.address };
	calls.store_count = 1;
	gap.ref = UPVALUE_REF + 1;
	find();
	assert_int_equal(steps.count, 2);
	assert_int_equal(expect_call(0, 2, pc_of(0, 1), 0)->function, stored.address);
	/* Not what it stores afterwards, or in an upvalue that holds another function now. */
	gap.ref = UPVALUE_REF;
	find();
	assert_int_equal(steps.count, 1);
	expect_call(0, 1, pc_of(0, 1), 0);
	gap.ref = UPVALUE_REF + 1;
	empty_upvalue_of = FUNCTION + 8;
	find();
	assert_int_equal(steps.count, 1);
	expect_call(0, 1, pc_of(0, 1), 0);
	/* What is no constant is unknown, and so is whose upvalue it is stored in. */
	calls.stores[0].upvalue.function = 0;
	calls.stores[0].stored = 0;
	find();
	assert_int_equal(steps.count, 1);
	expect_step(0, START, pc_of(0, 2), COST_GUESSED_CALL);
}

/* A check of the prototype lets other closures pass than the one among the constants. */
static void a_closure_is_known_if_no_check_lets_others_pass(void **state)
{
	const struct function_object closure = { .address = FUNCTION, .proto = &protos[0] };

	(void)state;
	set_call_of_upvalue();
	may_call_both();
	frames.frame[START].function = 0;
	calls.functions[0] = &closure;
	calls.function_count = 1;
	calls.checks[0] = (struct trace_check){ .ref = 0x8001, .callee = &protos[0], .function = FUNCTION };
	calls.check_count = 1;
	find();
	assert_int_equal(upvalue_of, FUNCTION);
	calls.checks[0].function = 0;
	find();
	assert_int_equal(upvalue_of, 0);
	calls.checks[0].callee = &protos[1];
	find();
	assert_int_equal(upvalue_of, FUNCTION);
	/* Nor is it known if there may be more closures. */
	calls.is_incomplete = true;
	find();
	assert_int_equal(upvalue_of, 0);
}

static void slots_of_a_called_function_may_be_unknown(void **state)
{
	const struct path_frame *frame;

	(void)state;
	set_call();
	may_call_both();
	calls.calls[0] = (struct trace_call){ pc_of(0, 1), &protos[1] };
	calls.call_count = 1;
	protos[1].flags = PROTO_VARARG;
	find_from(1);
	frame = expect_call(0, 1, pc_of(0, 1), 0);
	assert_int_equal(frame->base_slot, 0);
	protos[1].flags = (uint8_t)~PROTO_VARARG;
	frames.frame[START].base_slot = 0;
	find_from(1);
	frame = expect_call(0, 1, pc_of(0, 1), 0);
	assert_int_equal(frame->base_slot, 0);
	/* As many as there are, and one more. */
	frames.frame[START].base_slot = 255 - CALL_SLOT - 2;
	find_from(1);
	frame = expect_call(0, 1, pc_of(0, 1), 0);
	assert_int_equal(frame->base_slot, 255);
	frames.frame[START].base_slot++;
	find_from(1);
	frame = expect_call(0, 1, pc_of(0, 1), 0);
	assert_int_equal(frame->base_slot, 0);
}

static void a_checked_function_is_called_and_its_check_used(void **state)
{
	(void)state;
	set_call();
	may_call_both();
	calls.checks[0] = (struct trace_check){ .ref = 0x8001, .callee = &protos[2] };
	calls.checks[1] = (struct trace_check){ .ref = 0x8002, .callee = NULL };
	calls.checks[2] = (struct trace_check){ .ref = 0x8003, .callee = &protos[1], .function = FUNCTION };
	calls.check_count = 3;
	gap.first_check = 1;
	gap.end_check = 3;
	way.checks = 1;
	find_from(1);
	assert_int_equal(steps.count, 2);
	assert_int_equal(expect_call(0, 1, pc_of(0, 1), 0)->function, FUNCTION);
	assert_int_equal(steps.step[0].checks, 3);
	expect_step(1, START, pc_of(0, 2), COST_GUESSED_CALL);
	assert_int_equal(steps.step[1].checks, 0);
	/* The check is of what a snapshot shows, too. */
	calls.calls[0] = (struct trace_call){ pc_of(0, 1), &protos[1] };
	calls.call_count = 1;
	find_from(1);
	assert_int_equal(steps.count, 2);
	expect_call(0, 1, pc_of(0, 1), 0);
	expect_step(1, START, pc_of(0, 2), COST_UNEXPECTED_CALL + COST_GUESSED_CALL);
	calls.call_count = 0;
	/* It is used, or comes later. */
	way.checks = 3;
	find_from(1);
	assert_int_equal(steps.count, 1);
	way.checks = 1;
	gap.end_check = 2;
	find_from(1);
	assert_int_equal(steps.count, 1);
	expect_step(0, START, pc_of(0, 2), COST_GUESSED_CALL);
}

enum { KEY = 0x9000, OTHER_KEY = 0x9100 };

/* MAIN calls what a bytecode put in a slot; the key that this bytecode may look up is KEY. */
static void set_call_of(enum bytecode_op op)
{
	/* GCproto.k, and the constant below it */
	const uint64_t constants[] = { MAIN + AFTER_HEADER, KEY };

	SET_MAIN({ op, .a = CALL_SLOT }, { BC_CALL, .a = CALL_SLOT, .b = 1, .c = 1 }, { .op = BC_MOV });
	memcpy(bytes[0], constants, sizeof(constants));
	way.count = 0;
	go(START, pc_of(0, 0));
	go(START, pc_of(0, 1));
}

/* One check, of OTHER. */
static void set_check(enum trace_check_of of, uint64_t key)
{
	calls.checks[0] = (struct trace_check){ .ref = 0x8001, .callee = &protos[2], .of = of, .key = key };
	calls.check_count = gap.end_check = 1;
}

/* What is found calls OTHER at this cost, or a builtin. */
static void expect_checked(unsigned call, unsigned cost)
{
	find();
	assert_int_equal(steps.count, 2);
	expect_call(0, 2, pc_of(0, call), cost);
	assert_int_equal(steps.step[0].checks, 1);
	expect_step(1, START, pc_of(0, call + 1), COST_GUESSED_CALL);
}

static void a_check_is_of_the_call_of_what_was_read_by_its_key(void **state)
{
	(void)state;
	set_call_of(BC_GGET);
	set_check(CHECK_OF_TABLE, OTHER_KEY);
	calls.checks[1] = (struct trace_check){
		.ref = 0x8002, .callee = &protos[1], .of = CHECK_OF_TABLE, .key = KEY
	};
	calls.check_count = gap.end_check = 2;
	find();
	assert_int_equal(steps.count, 3);
	expect_call(0, 1, pc_of(0, 1), COST_UNUSED_CHECK);
	assert_int_equal(steps.step[0].checks, 2);
	/* The one before it is less likely. */
	expect_call(1, 2, pc_of(0, 1), COST_UNEXPECTED_CALL);
	assert_int_equal(steps.step[1].checks, 1);
	expect_step(2, START, pc_of(0, 2), COST_GUESSED_CALL);
	/* By which key the function was read, or what is in the slot, is not known. */
	set_check(CHECK_OF_TABLE, 0);
	expect_checked(1, 0);
	set_check(CHECK_OF_UNKNOWN, 0);
	expect_checked(1, 0);
	set_check(CHECK_OF_TABLE, OTHER_KEY);
	way.count = 0;
	go(START, pc_of(0, 1));
	expect_checked(1, 0);
}

/* LuaJIT checks __call and not the called object, and what it stored is forwarded. */
static void a_check_of_what_was_read_elsewhere_is_of_the_next_call(void **state)
{
	static const enum bytecode_op read[] = { BC_GGET, BC_GGET, BC_UGET };
	static const enum trace_check_of checked[] = { CHECK_OF_TABLE, CHECK_OF_UPVALUE, CHECK_OF_TABLE };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		set_call_of(read[i]);
		set_check(checked[i], OTHER_KEY);
		expect_checked(1, 0);
	}
	set_check(CHECK_OF_UPVALUE, 0);
	expect_checked(1, 0);
	/* As are those that run already. */
	set_check(CHECK_OF_TABLE, KEY);
	calls.checks[0].callee = &protos[0];
	find();
	expect_call(0, 0, pc_of(0, 1), COST_GUESSED_CALL);
}

static void what_a_builtin_was_checked_by_calls_that(void **state)
{
	(void)state;
	set_call_of(BC_GGET);
	set_check(CHECK_OF_TABLE, OTHER_KEY);
	calls.checks[1] = calls.checks[0];
	calls.checks[0] = (struct trace_check){ .ref = 0x8000, .of = CHECK_OF_TABLE, .key = KEY };
	calls.check_count = gap.end_check = 2;
	find();
	assert_int_equal(steps.count, 1);
	expect_step(0, START, pc_of(0, 2), COST_GUESSED_CALL);
	/* And not a Lua function of which nobody knows where it was read, such as a local one. */
	calls.checks[1].of = CHECK_OF_UNKNOWN;
	find();
	assert_int_equal(steps.count, 1);
	calls.checks[1].of = CHECK_OF_TABLE;
	/* Also if it was checked before the gap. */
	way.checks = gap.first_check = 1;
	find();
	assert_int_equal(steps.count, 1);
	way.checks = gap.first_check = 0;
	/* A builtin that is read elsewhere may be of another call. */
	calls.checks[0] = (struct trace_check){ .ref = 0x8000, .of = CHECK_OF_UNKNOWN };
	find();
	assert_int_equal(steps.count, 2);
	expect_call(0, 2, pc_of(0, 1), 0);
	assert_int_equal(steps.step[0].checks, 2);
	calls.checks[0] = (struct trace_check){ .ref = 0x8000, .of = CHECK_OF_TABLE, .key = OTHER_KEY };
	find();
	assert_int_equal(steps.count, 2);
	/* It is of no Lua function. */
	gap.end_check = 1;
	find();
	assert_int_equal(steps.count, 1);
	/* The setter of the slot is not known by a key: nor is the builtin's check of it. */
	set_call_of(BC_UGET);
	gap.end_check = 2;
	calls.checks[0].key = 0;
	find();
	assert_int_equal(steps.count, 2);
}

static void an_iterator_is_called_in_a_copy_of_its_slot(void **state)
{
	(void)state;
	SET_MAIN({ BC_UGET, .a = CALL_SLOT }, { .op = BC_MOV, .a = CALL_SLOT + 3 },
		 { BC_ITERC, .a = CALL_SLOT + 3, .b = 1, .c = 1 }, { .op = BC_MOV });
	set_check(CHECK_OF_TABLE, 0);
	for (unsigned i = 0; i < 3; i++)
		go(START, pc_of(0, i));
	expect_checked(2, 0);
	/* What a call left there is not known. */
	SET_MAIN({ BC_UGET, .a = CALL_SLOT }, { BC_CALL, .a = CALL_SLOT, .b = 4, .c = 1 },
		 { BC_ITERC, .a = CALL_SLOT + 3, .b = 1, .c = 1 }, { .op = BC_MOV });
	expect_checked(2, 0);
}

static void a_checked_function_that_runs_already_is_less_likely(void **state)
{
	(void)state;
	set_call();
	calls.checks[0] = (struct trace_check){ .ref = 0x8001, .callee = &protos[0] };
	calls.check_count = 1;
	gap.end_check = 1;
	find_from(1);
	assert_int_equal(steps.count, 2);
	expect_call(0, 0, pc_of(0, 1), COST_GUESSED_CALL);
	assert_int_equal(steps.step[0].checks, 1);
}

/* The goal's frame: CALLEE, called at a bytecode of MAIN. */
static int32_t set_goal(const struct proto *proto, unsigned call)
{
	const struct path_frame frame = { .proto = proto, .up = START, .call_pc = pc_of(0, call) };

	gap.goal = (struct path_goal){ .exists = true };
	gap.goal.point = (struct path_point){ .frame = path_frames_add(&frames, &frame), .pc = pc_of(1, 1) };
	return gap.goal.point.frame;
}

static void the_goal_shows_a_call(void **state)
{
	int32_t goal;

	(void)state;
	set_call();
	goal = set_goal(&protos[1], 1);
	find_from(1);
	assert_int_equal(steps.count, 2);
	expect_step(0, goal, pc_of(1, 0), 0);
	assert_int_equal(steps.step[0].checks, 0);
	expect_step(1, START, pc_of(0, 2), COST_UNEXPECTED_CALL + COST_GUESSED_CALL);
	/* Its check is used; one of another function makes that less likely. */
	calls.checks[0] = (struct trace_check){ .ref = 0x8001, .callee = &protos[1] };
	calls.check_count = 1;
	gap.end_check = 1;
	find_from(1);
	assert_int_equal(steps.count, 2);
	expect_step(0, goal, pc_of(1, 0), 0);
	assert_int_equal(steps.step[0].checks, 1);
	calls.checks[0].callee = &protos[2];
	find_from(1);
	assert_int_equal(steps.count, 3);
	expect_step(0, goal, pc_of(1, 0), 0);
	assert_int_equal(steps.step[0].checks, 0);
	expect_call(1, 2, pc_of(0, 1), COST_UNEXPECTED_CALL);
	assert_int_equal(steps.step[1].checks, 1);
	gap.end_check = 0;
	/* The call is elsewhere, or where the goal is does not matter, or there is none. */
	frames.frame[goal].call_pc = pc_of(0, 2);
	find_from(1);
	assert_int_equal(steps.count, 1);
	frames.frame[goal].call_pc = pc_of(0, 1);
	gap.goal.any_frame = true;
	find_from(1);
	assert_int_equal(steps.count, 1);
	gap.goal.any_frame = false;
	gap.goal.exists = false;
	find_from(1);
	assert_int_equal(steps.count, 1);
}

/* pcall and the like have no bytecode: what they call is entered. */
static void the_goal_shows_what_a_builtin_calls(void **state)
{
	struct path_frame inner = { .proto = &protos[1] };
	int32_t pcall, called;

	(void)state;
	set_call();
	pcall = set_goal(NULL, 1);
	inner.up = pcall;
	called = path_frames_add(&frames, &inner);
	gap.goal.point.frame = called;
	find_from(1);
	assert_int_equal(steps.count, 2);
	expect_step(0, called, pc_of(1, 0), 0);
	expect_step(1, START, pc_of(0, 2), COST_UNEXPECTED_CALL + COST_GUESSED_CALL);
	assert_int_equal(steps.step[0].checks, 0);
	/* Its check is used. */
	calls.checks[1] = (struct trace_check){ .ref = 0x8002, .callee = &protos[1] };
	calls.check_count = gap.end_check = 2;
	find_from(1);
	expect_step(0, called, pc_of(1, 0), 0);
	assert_int_equal(steps.step[0].checks, 2);
	gap.end_check = 0;
	/* What that calls is not entered yet. */
	inner = (struct path_frame){ .proto = &protos[2], .up = called, .call_pc = pc_of(1, 1) };
	gap.goal.point.frame = path_frames_add(&frames, &inner);
	find_from(1);
	expect_step(0, called, pc_of(1, 0), 0);
	frames.frame[called].proto = NULL;
	find_from(1);
	assert_int_equal(steps.count, 1);
	/* The builtin itself is the goal. */
	gap.goal.point.frame = pcall;
	find_from(1);
	assert_int_equal(steps.count, 1);
}

static void a_metamethod_is_entered_if_the_goal_shows_it(void **state)
{
	int32_t goal;

	(void)state;
	SET_MAIN({ .op = BC_MOV }, { .op = BC_TGETV }, { .op = BC_MOV });
	goal = set_goal(&protos[1], 1);
	find_from(1);
	assert_int_equal(steps.count, 2);
	expect_step(0, goal, pc_of(1, 0), 0);
	expect_step(1, START, pc_of(0, 2), 0);
	find_from(0);
	assert_int_equal(steps.count, 1);
}

static void the_only_candidate_is_guessed(void **state)
{
	(void)state;
	set_call();
	calls.callees[0] = &protos[1];
	calls.callee_count = 1;
	find_from(1);
	assert_int_equal(steps.count, 2);
	expect_step(0, START, pc_of(0, 2), COST_GUESSED_CALL);
	expect_call(1, 1, pc_of(0, 1), COST_GUESSED_CALL);
	/* Not if there are two, or may be, or if it runs already. */
	calls.is_incomplete = true;
	find_from(1);
	assert_int_equal(steps.count, 1);
	calls.is_incomplete = false;
	calls.callees[1] = &protos[2];
	calls.callee_count = 2;
	find_from(1);
	assert_int_equal(steps.count, 1);
	calls.callees[0] = &protos[0];
	calls.callee_count = 1;
	find_from(1);
	assert_int_equal(steps.count, 1);
	/* Nor if the callee is known. */
	calls.callees[0] = &protos[2];
	calls.calls[0] = (struct trace_call){ pc_of(0, 1), &protos[2] };
	calls.call_count = 1;
	find_from(1);
	assert_int_equal(steps.count, 2);
	expect_call(0, 2, pc_of(0, 1), 0);
}

static void a_tail_call_takes_its_callers_place(void **state)
{
	static const enum bytecode_op ops[] = { BC_CALLT, BC_CALLMT };

	(void)state;
	may_call_both();
	for (unsigned i = 0; i < 2; i++) {
		const struct path_frame below = { .proto = &protos[2], .up = -1 };
		const struct path_frame *frame;

		frames.frame[START].up = path_frames_add(&frames, &below);
		frames.frame[START].call_pc = pc_of(2, 0);
		SET_MAIN({ .op = BC_MOV }, { ops[i], .a = CALL_SLOT });
		calls.calls[0] = (struct trace_call){ pc_of(0, 1), &protos[1] };
		calls.call_count = 1;
		find_from(1);
		assert_int_equal(steps.count, 2);
		frame = &frames.frame[steps.step[0].point.frame];
		assert_ptr_equal(frame->proto, &protos[1]);
		assert_int_equal(frame->up, frames.frame[START].up);
		assert_int_equal(frame->call_pc, pc_of(2, 0));
		assert_int_equal(frame->base_slot, BASE_SLOT);
		expect_step(0, steps.step[0].point.frame, pc_of(1, 0), 0);
		/* A builtin returns at once. */
		expect_step(1, frames.frame[START].up, pc_of(2, 1), 0);
		/* A vararg function's own slots begin after its arguments. */
		protos[1].flags = PROTO_VARARG;
		find_from(1);
		assert_int_equal(frames.frame[steps.step[0].point.frame].base_slot, 0);
		protos[1].flags = 0;
	}
}

/*---- Returns ----*/

static void a_return_leads_behind_the_call(void **state)
{
	static const enum bytecode_op ops[] = { BC_RETM, BC_RET, BC_RET0, BC_RET1 };
	struct path_context all = context();

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		const struct bytecode callee[] = { { .op = BC_MOV }, { .op = ops[i] } };
		const struct path_frame called = { .proto = &protos[1], .up = START, .call_pc = pc_of(0, 1) };

		set_call();
		make_bytecodes(&protos[1], &layout, CALLEE, bytes[1], AFTER_HEADER, callee, 2);
		way.count = 0;
		go(path_frames_add(&frames, &called), pc_of(1, 1));
		find();
		assert_int_equal(steps.count, 1);
		expect_step(0, START, pc_of(0, 2), 0);
		assert_true(path_returns(&all, &way.points[0]));
		way.points[0].pc = pc_of(1, 0);
		assert_false(path_returns(&all, &way.points[0]));
		way.points[0].pc = pc_of(1, 2);
		assert_false(path_returns(&all, &way.points[0]));
		/* Nothing tells where the start frame returns to. */
		SET_MAIN({ .op = ops[i] });
		find_from(0);
		assert_int_equal(steps.count, 0);
	}
}

/* pcall returns where it was called. */
static void a_return_passes_builtins(void **state)
{
	struct path_frame pcall = { .up = START, .call_pc = pc_of(0, 1) };
	struct path_frame called = { .proto = &protos[1] };

	(void)state;
	set_call();
	called.up = path_frames_add(&frames, &pcall);
	pcall.up = called.up;
	pcall.call_pc = 0;
	called.up = path_frames_add(&frames, &pcall);
	way.count = 0;
	go(path_frames_add(&frames, &called), pc_of(1, 2));
	find();
	assert_int_equal(steps.count, 1);
	expect_step(0, START, pc_of(0, 2), 0);
	/* Below is nothing else. */
	frames.frame[pcall.up].up = -1;
	find();
	assert_int_equal(steps.count, 0);
}

/* The continuation of a comparison's metamethod decides its branch. */
static void a_metamethod_returns_into_its_bytecode(void **state)
{
	struct path_frame called = { .proto = &protos[1], .up = START, .call_pc = pc_of(0, 1) };
	int32_t frame;

	(void)state;
	SET_MAIN({ .op = BC_MOV }, { .op = BC_ISLT }, { BC_JMP, .b = JUMP, .c = FORWARDS },
		 { .op = BC_ADDVV });
	called.by_continuation = true;
	frame = path_frames_add(&frames, &called);
	go(frame, pc_of(1, 2));
	find();
	assert_int_equal(steps.count, 2);
	expect_step(0, START, pc_of(0, 3), 0);
	expect_step(1, START, pc_of(0, 3 + FORWARDS), 0);
	frames.frame[frame].call_pc = pc_of(0, 3);
	find();
	assert_int_equal(steps.count, 1);
	expect_step(0, START, pc_of(0, 4), 0);
}

static void steps_are_bounded(void **state)
{
	(void)state;
	set_call();
	may_call_both();
	for (size_t i = 0; i < MANY_STEPS; i++)
		calls.calls[i] = (struct trace_call){ pc_of(0, 1), &protos[1 + i % 2] };
	calls.call_count = MANY_STEPS;
	find_from(1);
	assert_int_equal(steps.count, PATH_STEPS_MAX);
}

/*---- Frames ----*/

static void frames_are_the_same_by_functions_and_calls(void **state)
{
	const struct path_frame called = { .proto = &protos[1], .up = START, .call_pc = 4 };
	int32_t one, same, other;

	(void)state;
	one = path_frames_add(&frames, &called);
	same = path_frames_add(&frames, &called);
	other = path_frames_add(&frames, &called);
	assert_int_equal(one, 1);
	assert_int_equal(frames.count, 4);
	assert_true(path_frames_are_same(&frames, one, one));
	assert_true(path_frames_are_same(&frames, one, same));
	assert_false(path_frames_are_same(&frames, one, START));
	assert_false(path_frames_are_same(&frames, START, one));
	assert_false(path_frames_are_same(&frames, one, -1));
	assert_false(path_frames_are_same(&frames, -1, one));
	assert_true(path_frames_are_same(&frames, -1, -1));
	frames.frame[other].call_pc = 8;
	assert_false(path_frames_are_same(&frames, one, other));
	frames.frame[other].call_pc = 4;
	frames.frame[other].proto = &protos[2];
	assert_false(path_frames_are_same(&frames, one, other));
	/* With other callers, and as start frames, which nothing called. */
	frames.frame[other] = (struct path_frame){ .proto = &protos[1], .up = same, .call_pc = 4 };
	assert_false(path_frames_are_same(&frames, one, other));
	frames.frame[one].up = frames.frame[same].up = -1;
	frames.frame[one].call_pc = 99;
	assert_true(path_frames_are_same(&frames, one, same));
}

static void callers_run_too(void **state)
{
	const struct path_frame called = { .proto = &protos[1], .up = START };
	int32_t frame;

	(void)state;
	frame = path_frames_add(&frames, &called);
	assert_true(path_frames_is_running(&frames, frame, &protos[1]));
	assert_true(path_frames_is_running(&frames, frame, &protos[0]));
	assert_false(path_frames_is_running(&frames, frame, &protos[2]));
	assert_false(path_frames_is_running(&frames, START, &protos[1]));
	assert_false(path_frames_is_running(&frames, -1, &protos[0]));
}

static void frames_are_bounded(void **state)
{
	enum { FRAMES_MAX = 1 << 16 };
	const struct path_frame frame = { .proto = &protos[2], .up = START };

	(void)state;
	while (frames.count < FRAMES_MAX) {
		int32_t next = (int32_t)frames.count;

		assert_int_equal(path_frames_add(&frames, &frame), next);
	}
	assert_int_equal(path_frames_add(&frames, &frame), -1);
	assert_int_equal(frames.count, FRAMES_MAX);
	/* Then no function is entered. */
	set_call();
	calls.calls[0] = (struct trace_call){ pc_of(0, 1), &protos[1] };
	calls.call_count = 1;
	find_from(1);
	assert_int_equal(steps.count, 1);
	path_frames_clear(&frames);
	assert_int_equal(frames.count, 0);
	assert_null(frames.frame);
}

/*---- Known calls and checks ----*/

static void each_call_is_known_once(void **state)
{
	(void)state;
	trace_calls_add(&calls, 4, &protos[1]);
	trace_calls_add(&calls, 4, &protos[1]);
	assert_int_equal(calls.call_count, 1);
	trace_calls_add(&calls, 8, &protos[1]);
	trace_calls_add(&calls, 4, &protos[2]);
	trace_calls_add(&calls, 0, &protos[2]);
	trace_calls_add(&calls, 12, NULL);
	assert_int_equal(calls.call_count, 3);
	assert_int_equal(calls.calls[1].pc, 8);
	assert_ptr_equal(calls.calls[2].callee, &protos[2]);
	for (uint64_t pc = 16; pc < 16 + 2 * TRACE_CALLS_MAX; pc++)
		trace_calls_add(&calls, pc, &protos[1]);
	assert_int_equal(calls.call_count, TRACE_CALLS_MAX);
	assert_int_equal(calls.calls[TRACE_CALLS_MAX - 1].pc, 16 + TRACE_CALLS_MAX - 4);
}

static void checks_are_those_of_the_instructions(void **state)
{
	uint32_t first, last;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		calls.checks[i].ref = 0x8010 + 0x10 * i;
	calls.check_count = 3;
	trace_calls_checks(&calls, 0x8010, 0x8020, &first, &last);
	assert_int_equal(first, 0);
	assert_int_equal(last, 1);
	trace_calls_checks(&calls, 0x8011, 0x8031, &first, &last);
	assert_int_equal(first, 1);
	assert_int_equal(last, 3);
	trace_calls_checks(&calls, 0x8031, 0x8040, &first, &last);
	assert_int_equal(first, 3);
	assert_int_equal(last, 3);
	trace_calls_checks(&calls, 0x8000, 0x8010, &first, &last);
	assert_int_equal(first, 0);
	assert_int_equal(last, 0);
}

/*---- Ways ----*/

static struct path_candidate *candidates;

/* Search from a bytecode of MAIN to another one. */
static size_t search(unsigned from, unsigned to)
{
	struct path_context all = context();
	struct path_start start = { .point = { .frame = START, .pc = pc_of(0, from) } };

	if (!candidates)
		candidates = calloc(PATH_CANDIDATES_MAX, sizeof(*candidates));
	assert_non_null(candidates);
	gap.goal.exists = true;
	gap.goal.point = (struct path_point){ .frame = START, .pc = pc_of(0, to) };
	return path_search(&all, &gap, &start, candidates);
}

/* The bytecodes of MAIN on the way. */
static void expect_way(size_t candidate, unsigned cost, const char *wanted)
{
	const struct path_way *found = &candidates[candidate].way;
	char text[256] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < found->count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d", i ? " " : "",
				       found->points[i].frame == START
					       ? (int)((found->points[i].pc - protos[0].bc) / BYTECODE_SIZE)
					       : -1);
	assert_string_equal(text, wanted);
	assert_int_equal(candidates[candidate].cost, cost);
}

static void a_straight_way_is_the_only_one(void **state)
{
	(void)state;
	SET_MAIN({ .op = BC_MOV }, { .op = BC_MOV }, { BC_JMP, .b = JUMP, .c = 1 }, { .op = BC_MOV },
		 { .op = BC_MOV });
	assert_int_equal(search(0, 4), 1);
	expect_way(0, 0, "0 1 2");
	assert_false(candidates[0].at_branch);
	assert_int_equal(search(1, 3), 0);
	gap.goal.is_end = true;
	assert_int_equal(search(0, 4), 1);
	expect_way(0, 0, "0 1 2 4");
	gap.goal.is_end = false;
}

static void the_end_of_a_way_may_be_a_branch(void **state)
{
	(void)state;
	SET_MAIN({ .op = BC_MOV }, { .op = BC_ISLT }, { BC_JMP, .b = JUMP, .c = FORWARDS }, { .op = BC_MOV },
		 { .op = BC_MOV }, { .op = BC_MOV }, { .op = BC_MOV }, { .op = BC_MOV });
	/* The snapshot is of the target that was not taken. */
	assert_int_equal(search(0, 7), 1);
	assert_true(candidates[0].at_branch);
	expect_way(0, 0, "0 1");
	assert_int_equal(search(0, 3), 1);
	assert_true(candidates[0].at_branch);
	expect_way(0, 0, "0 1");
	/* Already the first bytecode may be that branch. */
	assert_int_equal(search(1, 7), 1);
	assert_true(candidates[0].at_branch);
	expect_way(0, 0, "1");
	/* Behind it the way costs more. */
	assert_int_equal(search(0, 5), 1);
	assert_false(candidates[0].at_branch);
	expect_way(0, COST_COMPARISON, "0 1 3 4");
}

static void ways_are_found_by_their_costs(void **state)
{
	(void)state;
	/* One of both branches is followed by a second one. */
	SET_MAIN({ BC_IST, .c = 3 }, { BC_JMP, .b = JUMP, .c = 3 }, { .op = BC_ISLT },
		 { BC_JMP, .b = JUMP, .c = 1 }, { .op = BC_MOV }, { .op = BC_MOV }, { .op = BC_MOV });
	assert_int_equal(search(0, 6), 3);
	expect_way(0, 0, "0 1 5");
	expect_way(1, COST_COMPARISON, "0 2 4 5");
	expect_way(2, COST_COMPARISON, "0 2 5");
}

static void a_way_leaves_a_branch_to_the_taken_target(void **state)
{
	struct path_context all = context();
	struct path_start start = { .at_branch = true };

	(void)state;
	SET_MAIN({ .op = BC_ISLT }, { BC_JMP, .b = JUMP, .c = 1 }, { .op = BC_MOV }, { .op = BC_MOV },
		 { .op = BC_MOV });
	assert_int_equal(search(3, 4), 1);
	start.point = (struct path_point){ .frame = START, .pc = pc_of(0, 0) };
	start.not_taken = pc_of(0, 2);
	assert_int_equal(path_search(&all, &gap, &start, candidates), 1);
	expect_way(0, 0, "0 3");
	start.not_taken = pc_of(0, 3);
	assert_int_equal(path_search(&all, &gap, &start, candidates), 1);
	expect_way(0, 0, "0 2 3");
	/* Both lead to the same place. */
	SET_MAIN({ .op = BC_ISLT }, { BC_JMP, .b = JUMP, .c = 0 }, { .op = BC_MOV }, { .op = BC_MOV },
		 { .op = BC_MOV });
	start.not_taken = pc_of(0, 2);
	assert_int_equal(path_search(&all, &gap, &start, candidates), 2);
	expect_way(0, 0, "0 2 3");
}

static void ways_do_not_go_in_circles(void **state)
{
	(void)state;
	SET_MAIN({ .op = BC_MOV }, { BC_ITERL, .b = JUMP - 1, .c = UINT8_MAX - 1 }, { .op = BC_MOV },
		 { .op = BC_MOV });
	assert_int_equal(search(0, 3), 1);
	expect_way(0, 0, "0 1 2");
	SET_MAIN({ BC_JMP, .b = JUMP - 1, .c = UINT8_MAX }, { .op = BC_MOV });
	assert_int_equal(search(0, 1), 0);
}

/* So that no trace takes for ever, and what is hard to find leaves some to what comes next. */
static void a_search_may_use_half_of_the_visits_that_are_left(void **state)
{
	struct path_start start = { .point = { .frame = START, .pc = pc_of(0, 0) } };
	struct path_context all = context();

	(void)state;
	SET_MAIN({ .op = BC_MOV }, { .op = BC_MOV }, { .op = BC_MOV }, { .op = BC_MOV });
	assert_int_equal(search(0, 3), 1);
	visits_left = 10;
	assert_int_equal(path_search(&all, &gap, &start, candidates), 1);
	expect_way(0, 0, "0 1 2");
	assert_int_equal(visits_left, 5);
	assert_int_equal(path_search(&all, &gap, &start, candidates), 0);
	assert_int_equal(visits_left, 3);
	/* What is found when they are used up is one of several, maybe. */
	visits_left = 8;
	assert_int_equal(path_search(&all, &gap, &start, candidates), 0);
	assert_int_equal(visits_left, 4);
	/* All visits for all costs together. */
	visits_left = VISITS;
	assert_int_equal(search(3, 0), 0);
	assert_true(visits_left > 0 && visits_left < VISITS);
	visits_left = 0;
	assert_int_equal(path_search(&all, &gap, &start, candidates), 0);
	assert_int_equal(visits_left, 0);
}

static void only_the_pc_of_a_goal_may_matter(void **state)
{
	const struct path_frame elsewhere = { .proto = &protos[2], .up = -1 };
	struct path_context all = context();
	struct path_start start = { .point = { .frame = START } };

	(void)state;
	SET_MAIN({ .op = BC_MOV }, { .op = BC_MOV }, { .op = BC_ISLT }, { BC_JMP, .b = JUMP, .c = FORWARDS });
	assert_int_equal(search(0, 1), 1);
	start.point.pc = pc_of(0, 0);
	gap.goal.point.frame = path_frames_add(&frames, &elsewhere);
	assert_int_equal(path_search(&all, &gap, &start, candidates), 0);
	gap.goal.any_frame = true;
	assert_int_equal(path_search(&all, &gap, &start, candidates), 1);
	expect_way(0, 0, "0");
	/* Then a branch is no end of the way. */
	gap.goal.point.pc = pc_of(0, 4 + FORWARDS);
	assert_int_equal(path_search(&all, &gap, &start, candidates), 1);
	expect_way(0, COST_COMPARISON, "0 1 2");
	assert_false(candidates[0].at_branch);
	gap.goal.exists = false;
	gap.goal.point.pc = pc_of(0, 1);
	assert_int_equal(path_search(&all, &gap, &start, candidates), 0);
}

/* A check of a Lua function that the way does not call makes it less likely; one of a builtin does not. */
static void ways_use_their_checks(void **state)
{
	(void)state;
	SET_MAIN({ .op = BC_MOV }, { .op = BC_MOV });
	calls.checks[0] = (struct trace_check){ .ref = 0x8001, .callee = NULL };
	calls.checks[1] = (struct trace_check){ .ref = 0x8002, .callee = &protos[1] };
	calls.check_count = 2;
	gap.end_check = 1;
	assert_int_equal(search(0, 1), 1);
	expect_way(0, 0, "0");
	gap.end_check = 2;
	assert_int_equal(search(0, 1), 1);
	expect_way(0, COST_UNUSED_CHECK, "0");
	gap.first_check = 2;
	assert_int_equal(search(0, 1), 1);
	expect_way(0, 0, "0");
	gap.first_check = 0;
	/* Through the function that is checked, which returns. */
	SET_MAIN({ .op = BC_CALL }, { .op = BC_MOV });
	assert_int_equal(search(0, 1), 2);
	expect_way(0, 0, "0 -1 -1 -1");
	expect_way(1, COST_GUESSED_CALL + COST_UNUSED_CHECK, "0");
}

static void no_more_ways_are_found_than_there_is_room_for(void **state)
{
	enum { TESTS = 10 };
	struct bytecode bytecodes[2 * TESTS + 2] = { 0 };

	(void)state;
	for (unsigned i = 0; i < TESTS; i++) {
		bytecodes[2 * i] = (struct bytecode){ BC_IST, .c = (uint8_t)i };
		bytecodes[2 * i + 1] = (struct bytecode){ BC_JMP, .b = JUMP };
	}
	bytecodes[2 * TESTS] = bytecodes[2 * TESTS + 1] = (struct bytecode){ .op = BC_MOV };
	set_main(bytecodes, 2 * TESTS + 2);
	assert_int_equal(search(0, 2 * TESTS + 1), PATH_CANDIDATES_MAX);
	expect_way(0, 0, "0 2 4 6 8 10 12 14 16 18 20");
	free(candidates);
	candidates = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(most_bytecodes_lead_to_the_next),
		TEST(jumps_lead_to_their_targets),
		TEST(iterators_go_on_or_end),
		TEST(comparisons_and_loops_have_two_targets),
		TEST(loops_are_guarded_by_order),
		TEST(a_bytecode_that_a_trace_replaced_is_the_one_before),
		TEST(tests_of_constants_have_one_way),
		TEST(tests_of_copies_have_one_way),
		TEST(tests_of_arguments_have_one_way),
		TEST(arguments_of_a_called_object_are_others),
		TEST(a_variable_of_closures_may_be_set_unseen),
		TEST(comparisons_of_types_have_one_way),
		TEST(types_at_a_snapshot_decide),
		TEST(a_variable_of_a_snapshot_may_be_set_unseen),
		TEST(types_at_a_snapshot_decide_comparisons),
		TEST(constant_strings_are_equal_by_their_address),
		TEST(tests_of_returned_constants_have_one_way),
		TEST(tests_after_a_call_may_be_of_another_slot),
		TEST(an_unknown_call_is_of_a_builtin),
		TEST(a_loop_over_pairs_calls_nothing),
		TEST(a_call_that_a_snapshot_shows_is_likely),
		TEST(a_call_of_what_is_no_constant_is_of_other_traces),
		TEST(a_function_in_an_upvalue_is_called_if_it_is_a_constant),
		TEST(a_builtin_in_an_upvalue_is_called_if_it_is_a_constant),
		TEST(what_is_called_by_a_constant_upvalue_is_certain),
		TEST(what_a_trace_has_stored_in_an_upvalue_is_called),
		TEST(a_closure_is_known_if_no_check_lets_others_pass),
		TEST(slots_of_a_called_function_may_be_unknown),
		TEST(a_checked_function_is_called_and_its_check_used),
		TEST(a_check_is_of_the_call_of_what_was_read_by_its_key),
		TEST(a_check_of_what_was_read_elsewhere_is_of_the_next_call),
		TEST(what_a_builtin_was_checked_by_calls_that),
		TEST(an_iterator_is_called_in_a_copy_of_its_slot),
		TEST(a_checked_function_that_runs_already_is_less_likely),
		TEST(the_goal_shows_a_call),
		TEST(the_goal_shows_what_a_builtin_calls),
		TEST(a_metamethod_is_entered_if_the_goal_shows_it),
		TEST(the_only_candidate_is_guessed),
		TEST(a_tail_call_takes_its_callers_place),
		TEST(a_return_leads_behind_the_call),
		TEST(a_return_passes_builtins),
		TEST(a_metamethod_returns_into_its_bytecode),
		TEST(steps_are_bounded),
		TEST(frames_are_the_same_by_functions_and_calls),
		TEST(callers_run_too),
		TEST(frames_are_bounded),
		TEST(each_call_is_known_once),
		TEST(checks_are_those_of_the_instructions),
		TEST(a_straight_way_is_the_only_one),
		TEST(the_end_of_a_way_may_be_a_branch),
		TEST(ways_are_found_by_their_costs),
		TEST(a_way_leaves_a_branch_to_the_taken_target),
		TEST(ways_do_not_go_in_circles),
		TEST(a_search_may_use_half_of_the_visits_that_are_left),
		TEST(only_the_pc_of_a_goal_may_matter),
		TEST(ways_use_their_checks),
		TEST(no_more_ways_are_found_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
