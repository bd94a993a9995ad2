/* SPDX-License-Identifier: MIT */
/* The opcodes of a trace's IR have other numbers in each of LuaJIT's lines of releases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "unwind/trace/trace_block.h"

enum {
	ADDRESS = 0x10000,
	HEADER = 64,
	IR_SIZE = 8,
	CONSTANTS_END = 0x8000,
	NINS_AT = 8,
	NK_AT = 12,
	IR_AT = 16,
};

static const struct release {
	const char *name;
	bool gc64, mcofs;
	int32_t IR_KGC, GCstr_len, GCstr_size;
	uint8_t hrefk, sload; /* their numbers in lj_ir.h */
} releases[] = {
	{ "2.0", false, false, 23, 12, 16, 57, 69 },
	{ "2.1 of 2017, GC32", false, false, 24, 12, 16, 58, 71 },
	{ "2.1 of 2017, GC64", true, false, 24, 16, 24, 58, 71 },
	{ "2.1 of 2020, GC32", false, false, 24, 16, 20, 57, 70 },
	{ "2.1 of 2020, GC64", true, false, 24, 20, 24, 57, 70 },
	{ "2.1 of 2022, GC32", false, true, 24, 16, 20, 57, 71 },
	{ "2.1 of 2022, GC64", true, true, 24, 20, 24, 57, 71 },
};

static struct layout layout_of(const struct release *release)
{
	return (struct layout){
		.gc64 = release->gc64,
		.IR_KGC = release->IR_KGC,
		.GCstr_len = release->GCstr_len,
		.GCstr_size = release->GCstr_size,
		.SnapShot_mcofs = release->mcofs ? 8 : LAYOUT_ABSENT,
		.GCtrace_nins = NINS_AT,
		.GCtrace_nk = NK_AT,
		.GCtrace_ir = IR_AT,
	};
}

/* What the first instruction of a trace is, if its opcode has this number. */
static enum ir_op op_numbered(const struct release *release, uint8_t number)
{
	const uint32_t nins = CONSTANTS_END + 1, nk = CONSTANTS_END;
	const uint64_t ir = ADDRESS + HEADER - (uint64_t)CONSTANTS_END * IR_SIZE;
	uint8_t bytes[HEADER + IR_SIZE] = { 0 };
	const struct trace trace = { .address = ADDRESS, .bytes = bytes, .size = sizeof(bytes) };
	const struct layout layout = layout_of(release);
	struct trace_instruction ins;

	memcpy(bytes + NINS_AT, &nins, sizeof(nins));
	memcpy(bytes + NK_AT, &nk, sizeof(nk));
	memcpy(bytes + IR_AT, &ir, sizeof(ir));
	bytes[HEADER + 5] = number;
	assert_true(trace_instruction(&trace, &layout, TRACE_REF_BASE, &ins));
	return ins.op;
}

static void test_numbers_are_those_of_the_release(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
		const struct release *release = &releases[i];

		print_message("%s\n", release->name);
		assert_int_equal(op_numbered(release, 0), IR_LT);
		assert_int_equal(op_numbered(release, (uint8_t)release->IR_KGC), IR_KGC);
		assert_int_equal(op_numbered(release, release->hrefk), IR_HREFK);
		assert_int_equal(op_numbered(release, release->sload), IR_SLOAD);
		assert_int_equal(op_numbered(release, UINT8_MAX), IR__MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_are_those_of_the_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
