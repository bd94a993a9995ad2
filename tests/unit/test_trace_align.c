/* SPDX-License-Identifier: MIT */
/* Which bytecode an IR instruction was recorded for, in made-up functions and traces of 2.1, GC64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_proto.h"
#include "tests/unit/made_up_trace.h"
#include "unwind/jit/trace_align.h"
#include "unwind/trace/trace_block.h"
#include "unwind/lua/luajit.h"

enum {
	INSTRUCTIONS_MAX = 8,
	KEY_A = TRACE_REF_BIAS - 2, /* a constant of 64 bits takes two places */
	KEY_B = TRACE_REF_BIAS - 4,
	NUMBER_B = TRACE_REF_BIAS - 6,
	INTEGER_A = TRACE_REF_BIAS - 7,
	FUNCTION = TRACE_REF_BIAS - 9,
	FIRST = TRACE_REF_BASE + 1,

	/* A prototype: the address of its constants, objects, numbers, bytecode. */
	PROTO = 0x50000,
	CALLEE = 0x60000,
	K = 24,
	BYTECODE = 40,
	BYTECODES_MAX = 4,

	BASE_SLOT = 2,
	SLOT_SHIFT = 24, /* of an entry in a snapshot's map */
	STRING_A = 0xa000,
	STRING_B = 0xb000,
};

static const double number_a = 3, number_b = 0.25;

static struct layout layout = { .gc64 = true, MADE_UP_TRACE_LAYOUT };

/* The next snapshot has this instruction in a slot; 0: there is no snapshot. */
static struct {
	uint32_t ref;
	unsigned slot;
} in_snapshot;

struct instruction {
	enum ir_op op;
	uint16_t op1, op2;
	uint8_t type; /* 0: a number's */
};

struct made_up {
	struct made_up_trace trace;
	uint8_t proto_bytes[BYTECODE + BYTECODES_MAX * BYTECODE_SIZE];
	uint8_t callee_bytes[BYTECODE + BYTECODE_SIZE];
	struct proto proto, callee;
};

static void make_trace(struct made_up_trace *trace, const struct instruction *instructions, uint32_t count)
{
	uint64_t bits;

	made_up_trace_begin(trace, true);
	trace_put(trace, layout.GCtrace_nins, FIRST + count, 4);
	put_object(trace, KEY_A, IRT_STR, STRING_A);
	put_object(trace, KEY_B, IRT_STR, STRING_B);
	put_object(trace, FUNCTION, IRT_FUNC, CALLEE);
	memcpy(&bits, &number_b, sizeof(bits));
	put_wide(trace, NUMBER_B, IR_KNUM, IRT_NUM, bits);
	/* An integer has its value where others have operands. */
	put_ir(trace, INTEGER_A, IR_KINT, IRT_INT, (uint16_t)number_a, 0);
	for (uint32_t i = 0; i < count; i++)
		put_ir(trace, FIRST + i, instructions[i].op,
		       instructions[i].type ? instructions[i].type : IRT_NUM, instructions[i].op1,
		       instructions[i].op2);
	if (in_snapshot.ref) {
		const uint32_t entry = in_snapshot.slot << SLOT_SHIFT | in_snapshot.ref;

		put_snapshot(trace, FIRST + count, 0, &entry, 1);
		put_map_word(trace, 0);
		put_map_word(trace, 0);
	}
}

static void make_proto(struct proto *proto, uint64_t address, uint8_t *bytes,
		       const struct bytecode *bytecodes, uint32_t count)
{
	const uint64_t k = address + K, string_a = STRING_A, string_b = STRING_B;

	make_bytecodes(proto, &layout, address, bytes, BYTECODE, bytecodes, count);
	memcpy(bytes, &k, sizeof(k));
	memcpy(bytes + K - 8, &string_a, sizeof(string_a));
	memcpy(bytes + K - 16, &string_b, sizeof(string_b));
	memcpy(bytes + K, &number_a, sizeof(number_a));
	memcpy(bytes + K + 8, &number_b, sizeof(number_b));
}

/* The bytecodes are run one after the other; the first one enters another Lua function if so said. */
static void align(const struct bytecode *bytecodes, uint32_t bytecode_count, bool first_enters,
		  const struct instruction *instructions, uint32_t count, uint32_t *ret_points)
{
	const struct bytecode entry = { .op = BC_FUNCF };
	struct made_up made_up = { 0 };
	struct path_frame frame[] = {
		{ .proto = &made_up.proto, .up = -1, .base_slot = BASE_SLOT },
		{ .proto = &made_up.callee, .up = 0 },
	};
	struct path_frames frames = { .frame = frame, .count = 2, .size = 2 };
	struct lua_objects *objects = lua_objects_new();
	struct path_point points[BYTECODES_MAX + 1];
	const struct path_alignment alignment = {
		.trace = &made_up.trace.trace,
		.layout = &layout,
		.frames = &frames,
		.objects = objects,
		.ref = FIRST,
		.end_ref = FIRST + count,
	};
	size_t point_count = 0;

	assert_non_null(objects);
	assert_true(count <= INSTRUCTIONS_MAX && bytecode_count <= BYTECODES_MAX);
	make_trace(&made_up.trace, instructions, count);
	make_proto(&made_up.proto, PROTO, made_up.proto_bytes, bytecodes, bytecode_count);
	make_proto(&made_up.callee, CALLEE, made_up.callee_bytes, &entry, 1);
	for (uint32_t i = 0; i < bytecode_count; i++) {
		points[point_count++] = (struct path_point){ .pc = made_up.proto.bc +
								   (uint64_t)i * BYTECODE_SIZE };
		if (i == 0 && first_enters)
			points[point_count++] = (struct path_point){ .frame = 1, .pc = made_up.callee.bc };
	}
	assert_int_not_equal(trace_align(&alignment, points, point_count, ret_points), INT32_MIN);
	lua_objects_free(objects);
}

/* The instruction belongs to this bytecode and not to the other, whichever of them comes first. */
static void expect_choice(struct instruction instruction, struct bytecode its, struct bytecode other)
{
	uint32_t point;

	align((struct bytecode[]){ its, other }, 2, false, &instruction, 1, &point);
	assert_int_equal(point, 0);
	align((struct bytecode[]){ other, its }, 2, false, &instruction, 1, &point);
	assert_int_equal(point, 1);
}

static void the_called_function_outweighs_a_slot(void **state)
{
	/* The comparison reads slot 1 and could have loaded it; the call could not have. */
	const struct bytecode bytecodes[] = { { BC_CALL, .a = 5, .b = 1, .c = 1 },
					      { BC_ISEQV, .a = 1, .c = 2 } };
	const struct instruction instructions[] = { { IR_SLOAD, BASE_SLOT + 1, 0, 0 },
						    { IR_EQ, FIRST, FUNCTION, 0 } };
	uint32_t points[2];

	(void)state;
	align(bytecodes, 2, false, instructions, 2, points);
	assert_int_equal(points[0], 0);
	assert_int_equal(points[1], 0);
}

static void a_check_for_another_function_is_not_of_the_call(void **state)
{
	const struct bytecode call = { BC_CALL, .a = 5, .b = 1, .c = 1 };
	/* Nothing is known of the constant: it is no function that runs bytecode. */
	const struct instruction check = { IR_EQ, FIRST, FUNCTION, 0 };
	uint32_t point;

	(void)state;
	align((struct bytecode[]){ call, call }, 2, true, &check, 1, &point);
	assert_int_equal(point, 2);
	align((struct bytecode[]){ call, call }, 2, false, &check, 1, &point);
	assert_int_equal(point, 0);
}

static void arithmetic_belongs_to_its_operator(void **state)
{
	static const struct {
		enum bytecode_op bytecode;
		enum ir_op op, checked;
	} operators[] = {
		{ BC_ADDVV, IR_ADD, IR_ADDOV },
		{ BC_SUBVV, IR_SUB, IR_SUBOV },
		{ BC_MULVV, IR_MUL, IR_MULOV },
		{ BC_DIVVV, IR_DIV, IR_DIV },
	};
	const size_t count = sizeof(operators) / sizeof(operators[0]);

	(void)state;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++) {
			const struct bytecode its = { operators[i].bytecode, .a = 5, .b = 1, .c = 2 };
			const struct bytecode other = { operators[j].bytecode, .a = 6, .b = 3, .c = 4 };

			if (i == j)
				continue;
			expect_choice((struct instruction){ operators[i].op, FIRST, FIRST, 0 }, its, other);
			expect_choice((struct instruction){ operators[i].checked, FIRST, FIRST, 0 }, its,
				      other);
		}
}

static void a_remainder_is_all_of_one_bytecode(void **state)
{
	const struct bytecode bytecodes[] = { { BC_MODVV, 5, 1, 2 }, { BC_SUBVV, 6, 5, 3 } };
	const struct instruction instructions[] = {
		{ IR_DIV, FIRST, FIRST, 0 }, { IR_FPMATH, FIRST, 0, 0 },  { IR_MUL, FIRST, FIRST, 0 },
		{ IR_SUB, FIRST, FIRST, 0 }, { IR_SUB, FIRST, FIRST, 0 },
	};
	uint32_t points[5];

	(void)state;
	align(bytecodes, 2, false, instructions, 5, points);
	for (int i = 0; i < 4; i++)
		assert_int_equal(points[i], 0);
	assert_int_equal(points[4], 1);
}

static void each_sum_has_one_result(void **state)
{
	const struct bytecode sum = { BC_ADDVV, .a = 5, .b = 1, .c = 2 };
	const struct instruction add = { IR_ADD, FIRST, FIRST, 0 };
	uint32_t points[3];

	(void)state;
	align((struct bytecode[]){ sum, sum, sum }, 3, false, (struct instruction[]){ add, add, add }, 3,
	      points);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(points[i], i);
}

static void constants_tell_equal_operators_apart(void **state)
{
	const struct bytecode plus_a = { BC_ADDVN, .a = 5, .b = 1, .c = 0 };
	const struct bytecode plus_b = { BC_ADDVN, .a = 5, .b = 1, .c = 1 };

	(void)state;
	expect_choice((struct instruction){ IR_ADD, FIRST, NUMBER_B, 0 }, plus_b, plus_a);
	expect_choice((struct instruction){ IR_ADD, FIRST, INTEGER_A, 0 }, plus_a, plus_b);
}

static void keys_tell_fields_apart(void **state)
{
	const struct bytecode get_a = { BC_TGETS, .a = 5, .b = 1, .c = 0 };
	const struct bytecode get_b = { BC_TGETS, .a = 5, .b = 1, .c = 1 };
	const struct bytecode global_b = { BC_GGET, .a = 5, .c = 1 };

	(void)state;
	expect_choice((struct instruction){ IR_HREF, FIRST, KEY_A, 0 }, get_a, get_b);
	expect_choice((struct instruction){ IR_HREF, FIRST, KEY_B, 0 }, get_b, get_a);
	expect_choice((struct instruction){ IR_HREF, FIRST, KEY_B, 0 }, global_b, get_a);
}

static void loads_and_stores_belong_to_their_bytecodes(void **state)
{
	const struct bytecode get = { BC_TGETV, 5, 1, 2 }, set = { BC_TSETV, 5, 1, 2 };
	const struct bytecode get_string = { BC_TGETS, 5, 1, 0 };

	(void)state;
	expect_choice((struct instruction){ IR_HLOAD, FIRST, 0, 0 }, get, set);
	expect_choice((struct instruction){ IR_ALOAD, FIRST, 0, 0 }, get, set);
	expect_choice((struct instruction){ IR_HSTORE, FIRST, FIRST, 0 }, set, get);
	expect_choice((struct instruction){ IR_ASTORE, FIRST, FIRST, 0 }, set, get);
	expect_choice((struct instruction){ IR_TBAR, FIRST, 0, 0 }, set, get);
	expect_choice((struct instruction){ IR_AREF, FIRST, FIRST, 0 }, get, get_string);
}

static void upvalues_are_known_by_their_index(void **state)
{
	const struct bytecode get_0 = { BC_UGET, .a = 5, .c = 0 }, get_1 = { BC_UGET, .a = 5, .c = 1 };
	const struct bytecode set_1 = { BC_USETV, .a = 1, .c = 5 };

	(void)state;
	expect_choice((struct instruction){ IR_UREFO, FIRST, 1 << 8, 0 }, get_1, get_0);
	expect_choice((struct instruction){ IR_UREFC, FIRST, 0, 0 }, get_0, set_1);
	expect_choice((struct instruction){ IR_USTORE, FIRST, FIRST, 0 }, set_1, get_1);
	expect_choice((struct instruction){ IR_OBAR, FIRST, FIRST, 0 }, set_1, get_1);
	expect_choice((struct instruction){ IR_ULOAD, FIRST, 0, 0 }, get_1, set_1);
}

static void slots_belong_to_who_reads_them(void **state)
{
	const struct bytecode other = { BC_ADDVV, .a = 9, .b = 7, .c = 8 };
	const struct instruction load = { IR_SLOAD, BASE_SLOT + 3, 0, 0 };

	(void)state;
	expect_choice(load, (struct bytecode){ BC_ADDVV, .a = 9, .b = 3, .c = 8 }, other);
	expect_choice(load, (struct bytecode){ BC_ADDVV, .a = 9, .b = 7, .c = 3 }, other);
	expect_choice(load, (struct bytecode){ BC_MOV, .a = 9, .c = 3 }, other);
	expect_choice(load, (struct bytecode){ BC_ISLT, .a = 3, .c = 8 }, other);
	expect_choice(load, (struct bytecode){ BC_CAT, .a = 9, .b = 2, .c = 4 }, other);
	expect_choice(load, (struct bytecode){ BC_FORL, .a = 1 }, other);
	expect_choice(load, (struct bytecode){ BC_RET, .a = 3, .c = 2 }, other);
	/* It sets slot 3, or takes those around it. */
	expect_choice(load, (struct bytecode){ BC_MOV, .a = 9, .c = 3 },
		      (struct bytecode){ BC_MOV, .a = 3, .c = 9 });
	expect_choice(load, (struct bytecode){ BC_MOV, .a = 9, .c = 3 },
		      (struct bytecode){ BC_CAT, .a = 9, .b = 4, .c = 6 });
	expect_choice(load, (struct bytecode){ BC_MOV, .a = 9, .c = 3 },
		      (struct bytecode){ BC_FORL, .a = 0 });
	expect_choice(load, (struct bytecode){ BC_MOV, .a = 9, .c = 3 },
		      (struct bytecode){ BC_FORL, .a = 4 });
}

static void kinds_of_work_belong_to_their_bytecodes(void **state)
{
	const struct bytecode other = { BC_MOV, .a = 8, .c = 9 };
	static const struct {
		struct instruction instruction;
		struct bytecode bytecode;
	} known[] = {
		{ { IR_LT, FIRST, FIRST, 0 }, { BC_ISLT, 1, 0, 2 } },
		{ { IR_LE, FIRST, FIRST, 0 }, { BC_FORL, 1, 0, 2 } },
		{ { IR_EQ, FIRST, FIRST, 0 }, { BC_ISEQV, 1, 0, 2 } },
		{ { IR_RETF, FIRST, FIRST, 0 }, { BC_RET1, 1, 0, 2 } },
		{ { IR_RETF, FIRST, FIRST, 0 }, { BC_CALLT, 1, 0, 2 } },
		{ { IR_NEG, FIRST, FIRST, 0 }, { BC_UNM, 1, 0, 2 } },
		{ { IR_POW, FIRST, FIRST, 0 }, { BC_POW, 1, 2, 3 } },
		{ { IR_ALEN, FIRST, FIRST, 0 }, { BC_LEN, 1, 0, 2 } },
		{ { IR_FLOAD, FIRST, 0, 0 }, { BC_LEN, 1, 0, 2 } },
		{ { IR_TNEW, 0, 0, 0 }, { BC_TNEW, 1, 0, 2 } },
		{ { IR_TDUP, KEY_A, 0, 0 }, { BC_TDUP, 1, 0, 2 } },
		{ { IR_BUFHDR, 0, 0, 0 }, { BC_CAT, 1, 2, 3 } },
		{ { IR_ABS, FIRST, FIRST, 0 }, { BC_CALL, 1, 2, 2 } },
		{ { IR_CALLXS, FIRST, FIRST, 0 }, { BC_CALL, 1, 2, 2 } },
		{ { IR_CALLN, FIRST, FIRST, 0 }, { BC_CALL, 1, 2, 2 } },
		{ { IR_CNEWI, FIRST, FIRST, 0 }, { BC_CALL, 1, 2, 2 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		expect_choice(known[i].instruction, known[i].bytecode, other);
	expect_choice((struct instruction){ IR_TNEW, 0, 0, 0 }, (struct bytecode){ BC_TNEW, .a = 1 },
		      (struct bytecode){ BC_TDUP, .a = 1 });
	expect_choice((struct instruction){ IR_EQ, FIRST, FIRST, 0 }, (struct bytecode){ BC_ISEQV, .a = 1 },
		      (struct bytecode){ BC_ISLT, .a = 1 });
	expect_choice((struct instruction){ IR_LT, FIRST, FIRST, 0 }, (struct bytecode){ BC_ISLT, .a = 1 },
		      (struct bytecode){ BC_ISEQV, .a = 1 });
}

/* Of a LuaJIT that has such operators. */
static void operators_on_bits_do_arithmetic(void **state)
{
	static const enum ir_op instructions[] = { IR_BNOT, IR_BAND, IR_BSHL, IR_BSAR };
	const struct bytecode other = { BC_MOV, .a = 8, .c = 9 };

	(void)state;
	layout.bytecode = BYTECODE_V21_BITOPS;
	for (enum bytecode_op op = BC_BNOT; op <= BC_BSAR; op++)
		for (size_t i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++)
			expect_choice((struct instruction){ instructions[i], FIRST, FIRST, IRT_INT },
				      (struct bytecode){ op, .a = 1, .b = 2, .c = 3 }, other);
	layout.bytecode = 0;
}

static void operators_are_recorded_as_others(void **state)
{
	const struct bytecode other = { BC_DIVVV, .a = 6, .b = 3, .c = 4 };

	(void)state;
	/* x * 2 is x + x, x - 1 is x + -1, x / 2 is x * 0.5. */
	expect_choice((struct instruction){ IR_ADD, FIRST, FIRST, 0 },
		      (struct bytecode){ BC_MULVN, .a = 5, .b = 1, .c = 1 }, other);
	expect_choice((struct instruction){ IR_ADDOV, FIRST, FIRST, 0 },
		      (struct bytecode){ BC_SUBVN, .a = 5, .b = 1, .c = 1 }, other);
	expect_choice((struct instruction){ IR_MUL, FIRST, FIRST, 0 }, other,
		      (struct bytecode){ BC_SUBVV, .a = 5, .b = 1, .c = 1 });
	/* -x may be 0 - x. */
	expect_choice((struct instruction){ IR_SUB, FIRST, FIRST, 0 },
		      (struct bytecode){ BC_UNM, .a = 5, .c = 1 },
		      (struct bytecode){ BC_MULVV, .a = 5, .b = 1, .c = 1 });
}

static void a_concatenation_reads_all_its_slots(void **state)
{
	const struct instruction load = { IR_SLOAD, BASE_SLOT + 3, 0, 0 };
	const struct bytecode other = { BC_CAT, .a = 9, .b = 4, .c = 6 };

	(void)state;
	expect_choice(load, (struct bytecode){ BC_CAT, .a = 9, .b = 3, .c = 4 }, other);
	expect_choice(load, (struct bytecode){ BC_CAT, .a = 9, .b = 2, .c = 3 }, other);
	expect_choice(load, (struct bytecode){ BC_CAT, .a = 9, .b = 3, .c = 3 },
		      (struct bytecode){ BC_CAT, .a = 9, .b = 1, .c = 2 });
}

static void slots_of_calls_and_returns_are_read(void **state)
{
	const struct instruction load = { IR_SLOAD, BASE_SLOT + 3, 0, 0 };

	(void)state;
	expect_choice(load, (struct bytecode){ BC_CALL, .a = 3, .b = 1, .c = 1 },
		      (struct bytecode){ BC_CALL, .a = 7, .b = 1, .c = 1 });
	expect_choice(load, (struct bytecode){ BC_ITERC, .a = 6, .b = 1, .c = 1 },
		      (struct bytecode){ BC_ITERC, .a = 7, .b = 1, .c = 1 });
	expect_choice(load, (struct bytecode){ BC_RET, .a = 3, .c = 1 },
		      (struct bytecode){ BC_RET, .a = 4, .c = 1 });
	expect_choice(load, (struct bytecode){ BC_FORL, .a = 3 }, (struct bytecode){ BC_FORL, .a = 4 });
	/* Slots below the base are of no bytecode. */
	expect_choice((struct instruction){ IR_SLOAD, BASE_SLOT, 0, 0 },
		      (struct bytecode){ BC_MOV, .a = 9, .c = 0 },
		      (struct bytecode){ BC_MOV, .a = 9, .c = 1 });
}

static void constants_belong_to_their_concatenation(void **state)
{
	const struct bytecode bytecodes[] = { { BC_KSTR, .a = 3, .b = 0, .c = 0 },
					      { BC_CAT, .a = 9, .b = 2, .c = 3 },
					      { BC_KSTR, .a = 5, .b = 0, .c = 1 },
					      { BC_CAT, .a = 9, .b = 5, .c = 6 } };
	const struct instruction puts[] = { { IR_BUFPUT, FIRST, KEY_A, IRT_STR },
					    { IR_BUFPUT, FIRST, KEY_B, IRT_STR } };
	uint32_t points[2];

	(void)state;
	align(bytecodes, 4, false, puts, 2, points);
	assert_int_equal(points[0], 1);
	assert_int_equal(points[1], 3);
	align(bytecodes, 4, false, &puts[1], 1, points);
	assert_int_equal(points[0], 3);
	/* The first one of all: its slot is the last one. */
	align(bytecodes, 2, false, &puts[0], 1, points);
	assert_int_equal(points[0], 1);
}

/* Where the operators are equal, the next snapshot has the result in the slot that one of them sets. */
static void a_snapshot_tells_whose_result_it_is(void **state)
{
	const struct bytecode sums[] = { { BC_ADDVV, .a = 5, .b = 1, .c = 2 },
					 { BC_ADDVV, .a = 6, .b = 1, .c = 2 } };
	const struct instruction add = { IR_ADD, FIRST, FIRST, 0 };
	uint32_t point;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		in_snapshot.ref = FIRST;
		in_snapshot.slot = BASE_SLOT + sums[i].a;
		align(sums, 2, false, &add, 1, &point);
		assert_int_equal(point, i);
		align((struct bytecode[]){ sums[1], sums[0] }, 2, false, &add, 1, &point);
		assert_int_equal(point, 1 - i);
	}
	in_snapshot.ref = 0;
}

/* Loads and checks of a table's fields serve the access behind them. */
static void fields_of_a_table_belong_to_its_access(void **state)
{
	const struct bytecode bytecodes[] = { { BC_TGETS, .a = 5, .b = 1, .c = 0 },
					      { BC_TGETS, .a = 6, .b = 1, .c = 1 } };
	/* A table's hmask with its check, its nodes, then the node of the second key. */
	const struct instruction instructions[] = {
		{ IR_SLOAD, BASE_SLOT + 1, 0, IRT_TAB }, { IR_FLOAD, FIRST, 1, IRT_INT },
		{ IR_EQ, FIRST + 1, INTEGER_A, 0x80 },   { IR_FLOAD, FIRST, 2, IRT_INT },
		{ IR_HREF, FIRST, KEY_B, IRT_NUM },      { IR_HLOAD, FIRST + 4, 0, IRT_NUM },
	};
	uint32_t points[6];

	(void)state;
	align(bytecodes, 2, false, instructions, 6, points);
	for (int i = 1; i < 6; i++)
		assert_int_equal(points[i], 1);
}

/* A conversion, and a step of an index computation, serve what uses the index. */
static void conversions_belong_to_their_use(void **state)
{
	const struct bytecode bytecodes[] = { { BC_ADDVV, .a = 5, .b = 1, .c = 2 },
					      { BC_TGETV, .a = 6, .b = 1, .c = 2 } };
	const struct instruction instructions[] = {
		{ IR_ADD, FIRST, FIRST, IRT_NUM },         { IR_CONV, FIRST, 0, IRT_INT },
		{ IR_ADD, FIRST + 1, INTEGER_A, IRT_INT }, { IR_AREF, FIRST, FIRST + 2, IRT_NUM },
		{ IR_ALOAD, FIRST + 3, 0, IRT_NUM },
	};
	uint32_t points[5];

	(void)state;
	align(bytecodes, 2, false, instructions, 5, points);
	assert_int_equal(points[0], 0);
	for (int i = 1; i < 5; i++)
		assert_int_equal(points[i], 1);
}

/* Each has the result that it computes as its last work. */
static void nothing_follows_a_result(void **state)
{
	static const struct {
		struct instruction result;
		struct bytecode bytecode;
	} known[] = {
		{ { IR_ULOAD, FIRST, 0, 0 }, { BC_UGET, .a = 5 } },
		{ { IR_TNEW, 0, 0, 0 }, { BC_TNEW, .a = 5 } },
		{ { IR_TDUP, KEY_A, 0, 0 }, { BC_TDUP, .a = 5 } },
		{ { IR_NEG, FIRST, FIRST, 0 }, { BC_UNM, .a = 5 } },
		{ { IR_POW, FIRST, FIRST, 0 }, { BC_POW, .a = 5 } },
		{ { IR_SUBOV, FIRST, FIRST, 0 }, { BC_SUBVV, .a = 5 } },
		{ { IR_MULOV, FIRST, FIRST, 0 }, { BC_MULVV, .a = 5 } },
		{ { IR_DIV, FIRST, FIRST, 0 }, { BC_DIVVV, .a = 5 } },
		{ { IR_CALLXS, FIRST, FIRST, 0 }, { BC_CALL, .a = 5, .b = 1, .c = 1 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct bytecode bytecodes[] = { known[i].bytecode, known[i].bytecode };
		const struct instruction results[] = { known[i].result, known[i].result };
		uint32_t points[2];

		align(bytecodes, 2, false, results, 2, points);
		assert_int_equal(points[0], 0);
		assert_int_equal(points[1], 1);
	}
}

static void what_is_too_long_is_not_aligned(void **state)
{
	enum { POINTS = 1 << 11, INSTRUCTIONS = 1 << 10 };
	static struct path_point points[POINTS];
	static uint32_t assigned[INSTRUCTIONS + 1];
	struct made_up made_up = { 0 };
	struct path_frame frame = { .up = -1 };
	struct path_frames frames = { .frame = &frame, .count = 1, .size = 1 };
	struct lua_objects *objects = lua_objects_new();
	struct path_alignment alignment = {
		.trace = &made_up.trace.trace,
		.layout = &layout,
		.frames = &frames,
		.objects = objects,
		.ref = FIRST,
		.end_ref = FIRST + INSTRUCTIONS,
	};

	(void)state;
	assert_non_null(objects);
	make_trace(&made_up.trace, NULL, 0);
	assert_int_not_equal(trace_align(&alignment, points, POINTS, assigned), INT32_MIN);
	for (size_t i = 0; i < INSTRUCTIONS; i++)
		assert_in_range(assigned[i], 0, POINTS - 1);
	alignment.end_ref++;
	assert_int_equal(trace_align(&alignment, points, POINTS, assigned), INT32_MIN);
	assert_int_equal(trace_align(&alignment, points, 0, assigned), INT32_MIN);
	lua_objects_free(objects);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_called_function_outweighs_a_slot),
		cmocka_unit_test(a_check_for_another_function_is_not_of_the_call),
		cmocka_unit_test(arithmetic_belongs_to_its_operator),
		cmocka_unit_test(a_remainder_is_all_of_one_bytecode),
		cmocka_unit_test(each_sum_has_one_result),
		cmocka_unit_test(constants_tell_equal_operators_apart),
		cmocka_unit_test(keys_tell_fields_apart),
		cmocka_unit_test(loads_and_stores_belong_to_their_bytecodes),
		cmocka_unit_test(upvalues_are_known_by_their_index),
		cmocka_unit_test(slots_belong_to_who_reads_them),
		cmocka_unit_test(kinds_of_work_belong_to_their_bytecodes),
		cmocka_unit_test(operators_on_bits_do_arithmetic),
		cmocka_unit_test(operators_are_recorded_as_others),
		cmocka_unit_test(a_concatenation_reads_all_its_slots),
		cmocka_unit_test(slots_of_calls_and_returns_are_read),
		cmocka_unit_test(constants_belong_to_their_concatenation),
		cmocka_unit_test(a_snapshot_tells_whose_result_it_is),
		cmocka_unit_test(fields_of_a_table_belong_to_its_access),
		cmocka_unit_test(conversions_belong_to_their_use),
		cmocka_unit_test(nothing_follows_a_result),
		cmocka_unit_test(what_is_too_long_is_not_aligned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
