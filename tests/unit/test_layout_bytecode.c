/* SPDX-License-Identifier: MIT */
/* The opcode numbers and modes of each numbering are those of lj_bc.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/bytecode.h"

static void numbers_are_those_of_each_release(void **state)
{
	static const struct {
		enum bytecode_op op;
		int v20, v21, bitops;
	} known[] = {
		{ BC_ISLT, 0, 0, 0 },      { BC_ISTYPE, -1, 16, 16 },  { BC_MOV, 16, 18, 18 },
		{ BC_KNIL, 42, 44, 44 },   { BC_UGET, 43, 45, 45 },    { BC_GGET, 52, 54, 54 },
		{ BC_TGETS, 55, 57, 57 },  { BC_TGETR, -1, 59, 59 },   { BC_CALLM, 61, 65, 65 },
		{ BC_CALL, 62, 66, 66 },   { BC_CALLT, 64, 68, 68 },   { BC_ITERC, 65, 69, 69 },
		{ BC_ITERN, 66, 70, 70 },  { BC_RETM, 69, 73, 73 },    { BC_RET1, 72, 76, 76 },
		{ BC_JMP, 84, 88, 88 },    { BC_BNOT, -1, -1, 89 },    { BC_FUNCF, 85, 89, 96 },
		{ BC_FUNCC, 91, 95, 102 }, { BC_FUNCCW, 92, 96, 103 },
	};
	struct layout layout = { .bytecode = BYTECODE_V20 };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		layout.bytecode = BYTECODE_V20;
		assert_int_equal(bytecode_number(&layout, known[i].op), known[i].v20);
		layout.bytecode = BYTECODE_V21;
		assert_int_equal(bytecode_number(&layout, known[i].op), known[i].v21);
		layout.bytecode = BYTECODE_V21_BITOPS;
		assert_int_equal(bytecode_number(&layout, known[i].op), known[i].bitops);
	}
}

static void every_number_names_its_own_opcode(void **state)
{
	static const unsigned counts[BYTECODE_COUNT] = {
		[BYTECODE_V20] = 93,
		[BYTECODE_V21] = 97,
		[BYTECODE_V21_BITOPS] = 104,
	};
	struct layout layout = { .bytecode = BYTECODE_V20 };

	(void)state;
	for (unsigned set = 0; set < BYTECODE_COUNT; set++) {
		layout.bytecode = (enum layout_bytecode)set;
		for (unsigned number = 0; number < 256; number++) {
			enum bytecode_op op = bytecode_op(&layout, (uint8_t)number);

			assert_int_equal(op < BC__MAX, number < counts[set]);
			if (op < BC__MAX)
				assert_int_equal(bytecode_number(&layout, op), (int)number);
		}
	}
}

static void operands_mean_what_naming_needs(void **state)
{
	struct layout layout = { .bytecode = BYTECODE_V21 };
	uint8_t call = (uint8_t)bytecode_number(&layout, BC_CALL);
	uint8_t tgets = (uint8_t)bytecode_number(&layout, BC_TGETS);
	uint8_t knil = (uint8_t)bytecode_number(&layout, BC_KNIL);

	(void)state;
	assert_string_equal(bytecode_name(&layout, call), "CALL");
	assert_int_equal(bytecode_mode_a(&layout, call), BCMbase);
	assert_int_equal(bytecode_mm(&layout, call), MM_call);
	assert_int_equal(bytecode_mode_a(&layout, tgets), BCMdst);
	assert_int_equal(bytecode_mode_b(&layout, tgets), BCMvar);
	assert_int_equal(bytecode_mode_c(&layout, tgets), BCMstr);
	assert_string_equal(bytecode_mm_name(bytecode_mm(&layout, tgets)), "index");
	assert_int_equal(bytecode_mode_a(&layout, knil), BCMbase);
	assert_null(bytecode_name(&layout, 97));
	assert_null(bytecode_mm_name(bytecode_mm(&layout, 97)));
}

static void operands_are_cut_out_of_an_instruction(void **state)
{
	const uint32_t instruction = 0x44332211;

	(void)state;
	assert_int_equal(bytecode_a(instruction), 0x22);
	assert_int_equal(bytecode_c(instruction), 0x33);
	assert_int_equal(bytecode_b(instruction), 0x44);
	assert_int_equal(bytecode_d(instruction), 0x4433);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_those_of_each_release),
		cmocka_unit_test(every_number_names_its_own_opcode),
		cmocka_unit_test(operands_mean_what_naming_needs),
		cmocka_unit_test(operands_are_cut_out_of_an_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
