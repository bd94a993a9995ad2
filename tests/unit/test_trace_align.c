/* SPDX-License-Identifier: MIT */
/* Which bytecode an IR instruction was recorded for, in made-up functions and traces of 2.1, GC64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/bytecode.h"
#include "tests/unit/made_up_proto.h"
#include "tests/unit/made_up_trace.h"
#include "unwind/jit/trace_align.h"
#include "unwind/trace/trace_block.h"
#include "unwind/lua/luajit.h"

enum {
	/* The trace: a header, constants, instructions. */
	TRACE = 0x10000,
	HEADER = 64,
	NINS_AT = 8,
	NK_AT = 12,
	IR_AT = 16,
	INSTRUCTIONS_MAX = 8,
	KEY_A = TRACE_REF_BIAS - 2, /* a constant of 64 bits takes two places */
	KEY_B = TRACE_REF_BIAS - 4,
	NUMBER_B = TRACE_REF_BIAS - 6,
	INTEGER_A = TRACE_REF_BIAS - 7,
	FUNCTION = TRACE_REF_BIAS - 9,
	CONSTANTS_BEGIN = FUNCTION,
	CONSTANTS = TRACE_REF_BIAS - CONSTANTS_BEGIN,
	FIRST = TRACE_REF_BASE + 1,

	/* A prototype: the address of its constants, objects, numbers, bytecode. */
	PROTO = 0x50000,
	CALLEE = 0x60000,
	K = 24,
	BYTECODE = 40,
	BYTECODES_MAX = 4,

	BASE_SLOT = 2,
	STRING_A = 0xa000,
	STRING_B = 0xb000,
};

static const double number_a = 3, number_b = 0.25;

static const struct layout layout = {
	.gc64 = true,
	.bytecode = BYTECODE_V21,
	.IR_KGC = 24,
	.SnapShot_mcofs = 8,
	.GCtrace_nins = NINS_AT,
	.GCtrace_nk = NK_AT,
	.GCtrace_ir = IR_AT,
	.GCproto_k = 0,
};

struct instruction {
	enum ir_op op;
	uint16_t op1, op2;
};

struct made_up {
	uint8_t trace_bytes[HEADER + (CONSTANTS + 1 + INSTRUCTIONS_MAX) * TRACE_IR_SIZE];
	struct trace trace;
	uint8_t proto_bytes[BYTECODE + BYTECODES_MAX * BYTECODE_SIZE];
	uint8_t callee_bytes[BYTECODE + BYTECODE_SIZE];
	struct proto proto, callee;
};

static uint8_t *place_of(struct made_up *made_up, uint32_t ref)
{
	return made_up->trace_bytes + HEADER + (ref - CONSTANTS_BEGIN) * TRACE_IR_SIZE;
}

static void set_instruction(struct made_up *made_up, uint32_t ref, const struct instruction *instruction,
			    uint8_t type)
{
	uint8_t number = ir_number(&layout, instruction->op), *bytes = place_of(made_up, ref);

	memcpy(bytes, &instruction->op1, sizeof(instruction->op1));
	memcpy(bytes + 2, &instruction->op2, sizeof(instruction->op2));
	bytes[4] = type;
	bytes[5] = number;
}

static void set_constant(struct made_up *made_up, uint32_t ref, enum ir_op op, uint8_t type,
			 const void *value)
{
	set_instruction(made_up, ref, &(struct instruction){ .op = op }, type);
	memcpy(place_of(made_up, ref + 1), value, sizeof(uint64_t));
}

static void make_trace(struct made_up *made_up, const struct instruction *instructions, uint32_t count)
{
	const uint32_t nins = FIRST + count, nk = CONSTANTS_BEGIN;
	const uint64_t ir = TRACE + HEADER - (uint64_t)CONSTANTS_BEGIN * TRACE_IR_SIZE;
	const uint64_t string_a = STRING_A, string_b = STRING_B, function = CALLEE;

	made_up->trace = (struct trace){
		.address = TRACE,
		.bytes = made_up->trace_bytes,
		.size = sizeof(made_up->trace_bytes),
	};
	memcpy(made_up->trace_bytes + NINS_AT, &nins, sizeof(nins));
	memcpy(made_up->trace_bytes + NK_AT, &nk, sizeof(nk));
	memcpy(made_up->trace_bytes + IR_AT, &ir, sizeof(ir));
	set_constant(made_up, KEY_A, IR_KGC, IRT_STR, &string_a);
	set_constant(made_up, KEY_B, IR_KGC, IRT_STR, &string_b);
	set_constant(made_up, NUMBER_B, IR_KNUM, IRT_NUM, &number_b);
	set_constant(made_up, FUNCTION, IR_KGC, IRT_FUNC, &function);
	/* An integer has its value where others have operands. */
	set_instruction(made_up, INTEGER_A, &(struct instruction){ IR_KINT, (uint16_t)number_a, 0 }, IRT_INT);
	for (uint32_t i = 0; i < count; i++)
		set_instruction(made_up, FIRST + i, &instructions[i], IRT_NUM);
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
		.trace = &made_up.trace,
		.layout = &layout,
		.frames = &frames,
		.objects = objects,
		.ref = FIRST,
		.end_ref = FIRST + count,
	};
	size_t point_count = 0;

	assert_non_null(objects);
	assert_true(count <= INSTRUCTIONS_MAX && bytecode_count <= BYTECODES_MAX);
	make_trace(&made_up, instructions, count);
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
	const struct instruction instructions[] = { { IR_SLOAD, BASE_SLOT + 1, 0 },
						    { IR_EQ, FIRST, FUNCTION } };
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
	const struct instruction check = { IR_EQ, FIRST, FUNCTION };
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
			expect_choice((struct instruction){ operators[i].op, FIRST, FIRST }, its, other);
			expect_choice((struct instruction){ operators[i].checked, FIRST, FIRST }, its, other);
		}
}

static void a_remainder_is_all_of_one_bytecode(void **state)
{
	const struct bytecode bytecodes[] = { { BC_MODVV, 5, 1, 2 }, { BC_SUBVV, 6, 5, 3 } };
	const struct instruction instructions[] = {
		{ IR_DIV, FIRST, FIRST }, { IR_FPMATH, FIRST, 0 },  { IR_MUL, FIRST, FIRST },
		{ IR_SUB, FIRST, FIRST }, { IR_SUB, FIRST, FIRST },
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
	const struct instruction add = { IR_ADD, FIRST, FIRST };
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
	expect_choice((struct instruction){ IR_ADD, FIRST, NUMBER_B }, plus_b, plus_a);
	expect_choice((struct instruction){ IR_ADD, FIRST, INTEGER_A }, plus_a, plus_b);
}

static void keys_tell_fields_apart(void **state)
{
	const struct bytecode get_a = { BC_TGETS, .a = 5, .b = 1, .c = 0 };
	const struct bytecode get_b = { BC_TGETS, .a = 5, .b = 1, .c = 1 };
	const struct bytecode global_b = { BC_GGET, .a = 5, .c = 1 };

	(void)state;
	expect_choice((struct instruction){ IR_HREF, FIRST, KEY_A }, get_a, get_b);
	expect_choice((struct instruction){ IR_HREF, FIRST, KEY_B }, get_b, get_a);
	expect_choice((struct instruction){ IR_HREF, FIRST, KEY_B }, global_b, get_a);
}

static void loads_and_stores_belong_to_their_bytecodes(void **state)
{
	const struct bytecode get = { BC_TGETV, 5, 1, 2 }, set = { BC_TSETV, 5, 1, 2 };
	const struct bytecode get_string = { BC_TGETS, 5, 1, 0 };

	(void)state;
	expect_choice((struct instruction){ IR_HLOAD, FIRST, 0 }, get, set);
	expect_choice((struct instruction){ IR_ALOAD, FIRST, 0 }, get, set);
	expect_choice((struct instruction){ IR_HSTORE, FIRST, FIRST }, set, get);
	expect_choice((struct instruction){ IR_ASTORE, FIRST, FIRST }, set, get);
	expect_choice((struct instruction){ IR_TBAR, FIRST, 0 }, set, get);
	expect_choice((struct instruction){ IR_AREF, FIRST, FIRST }, get, get_string);
}

static void upvalues_are_known_by_their_index(void **state)
{
	const struct bytecode get_0 = { BC_UGET, .a = 5, .c = 0 }, get_1 = { BC_UGET, .a = 5, .c = 1 };
	const struct bytecode set_1 = { BC_USETV, .a = 1, .c = 5 };

	(void)state;
	expect_choice((struct instruction){ IR_UREFO, FIRST, 1 << 8 }, get_1, get_0);
	expect_choice((struct instruction){ IR_UREFC, FIRST, 0 }, get_0, set_1);
	expect_choice((struct instruction){ IR_USTORE, FIRST, FIRST }, set_1, get_1);
	expect_choice((struct instruction){ IR_OBAR, FIRST, FIRST }, set_1, get_1);
	expect_choice((struct instruction){ IR_ULOAD, FIRST, 0 }, get_1, set_1);
}

static void slots_belong_to_who_reads_them(void **state)
{
	const struct bytecode other = { BC_ADDVV, .a = 9, .b = 7, .c = 8 };
	const struct instruction load = { IR_SLOAD, BASE_SLOT + 3, 0 };

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
		{ { IR_LT, FIRST, FIRST }, { BC_ISLT, 1, 0, 2 } },
		{ { IR_LE, FIRST, FIRST }, { BC_FORL, 1, 0, 2 } },
		{ { IR_EQ, FIRST, FIRST }, { BC_ISEQV, 1, 0, 2 } },
		{ { IR_RETF, FIRST, FIRST }, { BC_RET1, 1, 0, 2 } },
		{ { IR_RETF, FIRST, FIRST }, { BC_CALLT, 1, 0, 2 } },
		{ { IR_NEG, FIRST, FIRST }, { BC_UNM, 1, 0, 2 } },
		{ { IR_POW, FIRST, FIRST }, { BC_POW, 1, 2, 3 } },
		{ { IR_ALEN, FIRST, FIRST }, { BC_LEN, 1, 0, 2 } },
		{ { IR_FLOAD, FIRST, 0 }, { BC_LEN, 1, 0, 2 } },
		{ { IR_TNEW, 0, 0 }, { BC_TNEW, 1, 0, 2 } },
		{ { IR_TDUP, KEY_A, 0 }, { BC_TDUP, 1, 0, 2 } },
		{ { IR_BUFHDR, 0, 0 }, { BC_CAT, 1, 2, 3 } },
		{ { IR_ABS, FIRST, FIRST }, { BC_CALL, 1, 2, 2 } },
		{ { IR_CALLXS, FIRST, FIRST }, { BC_CALL, 1, 2, 2 } },
		{ { IR_CALLN, FIRST, FIRST }, { BC_CALL, 1, 2, 2 } },
		{ { IR_CNEWI, FIRST, FIRST }, { BC_CALL, 1, 2, 2 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		expect_choice(known[i].instruction, known[i].bytecode, other);
	expect_choice((struct instruction){ IR_TNEW, 0, 0 }, (struct bytecode){ BC_TNEW, .a = 1 },
		      (struct bytecode){ BC_TDUP, .a = 1 });
	expect_choice((struct instruction){ IR_EQ, FIRST, FIRST }, (struct bytecode){ BC_ISEQV, .a = 1 },
		      (struct bytecode){ BC_ISLT, .a = 1 });
	expect_choice((struct instruction){ IR_LT, FIRST, FIRST }, (struct bytecode){ BC_ISLT, .a = 1 },
		      (struct bytecode){ BC_ISEQV, .a = 1 });
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
