/* SPDX-License-Identifier: MIT */
/* IR instructions, operands and snapshots as jit.dump writes them, in a made-up trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/range_bytes.h"
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/field.h"
#include "unwind/listing/ir_text.h"

enum {
	ADDRESS = 0x10000, /* of the trace */
	CONSTANTS = 16,    /* places of IR below and from REF_BIAS on */
	INSTRUCTIONS = 16,
	IR_SIZE = 8,
	BIAS = 0x8000,
	HEADER = 128,
	SNAP_SIZE = 12,
	SNAPS_AT = HEADER + (CONSTANTS + INSTRUCTIONS) * IR_SIZE,
	MAP_AT = SNAPS_AT + SNAP_SIZE,
	MAP_ENTRIES = 8,
	BYTES = MAP_AT + 4 * MAP_ENTRIES,
	STRING = 0x20000,
	NO_REGISTER = 0x80,
};

static struct layout layout = {
	.gc64 = true,
	.bytecode = BYTECODE_V21,
	.IR_KGC = 24,
	.GChead_gct = 9,
	.GCstr_len = 20,
	.GCstr_size = 24,
	.GCtrace_nins = 8,
	.GCtrace_nk = 12,
	.GCtrace_ir = 16,
	.GCtrace_snap = 24,
	.GCtrace_snapmap = 32,
	.GCtrace_nsnap = 40,
	.GCtrace_nsnapmap = 44,
	.SnapShot_mapofs = 0,
	.SnapShot_ref = 4,
	.SnapShot_mcofs = 6,
	.SnapShot_nslots = 8,
	.SnapShot_topslot = 9,
	.SnapShot_nent = 10,
	.SnapShot_count = 11,
	.SnapShot_size = SNAP_SIZE,
	.L_exdata = LAYOUT_ABSENT,
	.L_exdata2 = LAYOUT_ABSENT,
};

/* Numbers of opcodes in 2.1 since 2021. */
enum {
	LOOP = 17,
	KPRI = 22,
	KINT = 23,
	KGC = 24,
	KNUM = 28,
	KINT64 = 29,
	ADD = 41,
	FLOAD = 69,
	SLOAD = 71,
	CONV = 91,
	CALLL = 97,
	CARG = 100,
};

enum { NIL = 0, STR = 4, TAB = 11, NUM = 14, INT = 19, I64 = 21, GUARD = 0x80, PHI = 0x40 };

static struct made {
	uint8_t bytes[BYTES];
	struct trace trace;
	struct listing_source source;
	struct builtins builtins;
	char string[64];
	uint32_t string_length;
} made;

static void put(size_t offset, uint64_t value, size_t size)
{
	memcpy(made.bytes + offset, &value, size);
}

/* The only memory that there is holds a string. */
static void read_string(struct memory *memory, struct memory_range *ranges, size_t count)
{
	uint8_t bytes[24 + sizeof(made.string)] = { 0 };

	(void)memory;
	bytes[layout.GChead_gct] = GCT_STRING;
	memcpy(bytes + layout.GCstr_len, &made.string_length, sizeof(made.string_length));
	memcpy(bytes + layout.GCstr_size, made.string, sizeof(made.string));
	range_bytes(ranges, count, STRING, bytes, sizeof(bytes));
}

static struct memory memory = { .read_ranges = read_string };

static int make_trace(void **state)
{
	const uint64_t ir = ADDRESS + HEADER - (uint64_t)(BIAS - CONSTANTS) * IR_SIZE;

	(void)state;
	memset(&made, 0, sizeof(made));
	put((size_t)layout.GCtrace_nins, BIAS + INSTRUCTIONS, 4);
	put((size_t)layout.GCtrace_nk, BIAS - CONSTANTS, 4);
	put((size_t)layout.GCtrace_ir, ir, 8);
	put((size_t)layout.GCtrace_snap, ADDRESS + SNAPS_AT, 8);
	put((size_t)layout.GCtrace_snapmap, ADDRESS + MAP_AT, 8);
	made.trace = (struct trace){ .address = ADDRESS, .bytes = made.bytes, .size = BYTES };
	made.source = (struct listing_source){
		.memory = &memory,
		.layout = &layout,
		.objects = lua_objects_new(),
		.builtins = &made.builtins,
		.numbering = NUMBERING_V21,
	};
	assert_non_null(made.source.objects);
	return 0;
}

static int free_trace(void **state)
{
	(void)state;
	lua_objects_free(made.source.objects);
	return 0;
}

/* Set the instruction at a reference, counted from REF_BIAS. */
static void set(int ref, uint8_t op, uint8_t type, unsigned op1, unsigned op2)
{
	size_t at = (size_t)(HEADER + (CONSTANTS + ref) * IR_SIZE);

	put(at, op1, 2);
	put(at + 2, op2, 2);
	put(at + 4, type, 1);
	put(at + 5, op, 1);
	put(at + 6, NO_REGISTER, 1);
	put(at + 7, 0, 1);
}

/* A constant whose value is in the next place. */
static void set_wide(int ref, uint8_t op, uint8_t type, uint64_t value)
{
	set(ref, op, type, 0, 0);
	put((size_t)(HEADER + (CONSTANTS + ref + 1) * IR_SIZE), value, 8);
}

static uint64_t bits(double number)
{
	uint64_t value;

	memcpy(&value, &number, sizeof(value));
	return value;
}

static const char *register_name(unsigned reg)
{
	return reg == 0 ? "rax" : NULL;
}

static const struct ir_text *text(void)
{
	static struct ir_text made_text;

	made_text = (struct ir_text){ &made.source, &made.trace, register_name };
	return &made_text;
}

static void check_instruction(int ref, const char *wanted)
{
	struct listing_text written;
	char *line;

	assert_true(listing_text_begin(&written));
	assert_true(ir_text_instruction(text(), (uint32_t)(BIAS + ref), written.out));
	line = listing_text_end(&written);
	assert_non_null(line);
	assert_string_equal(line, wanted);
	free(line);
}

static void test_locations_and_flags(void **state)
{
	(void)state;
	set(1, SLOAD, INT | GUARD, 4, 4 | 8 | 32);
	check_instruction(1, "0001       >  int SLOAD  #4    TCI");
	set(1, ADD, INT | PHI, BIAS + 2, BIAS + 3);
	put(HEADER + (CONSTANTS + 1) * IR_SIZE + 6, 0, 1);
	check_instruction(1, "0001 rax    + int ADD    0002  0003");
	put(HEADER + (CONSTANTS + 1) * IR_SIZE + 7, 5, 1);
	check_instruction(1, "0001 [14]   + int ADD    0002  0003");
	put(HEADER + (CONSTANTS + 1) * IR_SIZE + 6, 0xfd, 2);
	check_instruction(1, "0001  {sink}+ int ADD    0002  0003");
	set(1, LOOP, NIL, 0, 0);
	check_instruction(1, "0001 ------------ LOOP ------------");
	set(1, 200, INT, 7, 8);
	check_instruction(1, "0001          int #200   op1 7 op2 8");
}

static void test_constants(void **state)
{
	(void)state;
	set(-1, KPRI, NIL, 0, 0);
	set(-2, KINT, INT, 0xfffe, 0xffff);
	set_wide(-4, KNUM, NUM, bits(0.5));
	set_wide(-6, KNUM, NUM, bits(0x1.8p52));
	set_wide(-8, KINT64, I64, UINT64_MAX);
	set_wide(-10, KNUM, NUM, bits(0x1p-1030));
	set(1, ADD, NUM, BIAS - 2, BIAS - 4);
	check_instruction(1, "0001          num ADD    -2    +0.5");
	set(1, ADD, NUM, BIAS - 6, BIAS - 8);
	check_instruction(1, "0001          num ADD    bias  -1  ");
	set(1, ADD, NUM, BIAS - 1, BIAS - 10);
	check_instruction(1, "0001          num ADD    nil   +0x1p-1030");
}

static void test_strings(void **state)
{
	(void)state;
	set_wide(-2, KGC, STR, STRING);
	set(1, ADD, STR, BIAS - 2, BIAS + 1);
	made.string_length = (uint32_t)strlen(strcpy(made.string, "a\n\1\"b"));
	check_instruction(1, "0001          str ADD    \"a\\n\\001\"b\"  0001");
	made.string_length = (uint32_t)strlen(strcpy(made.string, "more than twenty bytes"));
	check_instruction(1, "0001          str ADD    \"more than twenty byt\"~  0001");
	set_wide(-2, KGC, STR, 8);
	check_instruction(1, "0001          str ADD    string: 0x00000008  0001");
	set_wide(-2, KGC, TAB, 0x7f1234567890);
	check_instruction(1, "0001          str ADD    {0x7f1234567890}  0001");
}

static void test_literals_have_names_by_build(void **state)
{
	(void)state;
	set(1, FLOAD, TAB, BIAS + 1, 6);
	check_instruction(1, "0001          tab FLOAD  0001  tab.array");
	made.source.numbering = NUMBERING_LUAJIT2;
	check_instruction(1, "0001          tab FLOAD  0001  thread.exdata2");
	made.source.numbering = NUMBERING_UNKNOWN;
	check_instruction(1, "0001          tab FLOAD  0001  #6  ");
	set(1, CONV, NUM, BIAS + 1, NUM << 5 | INT);
	check_instruction(1, "0001          num CONV   0001  num.int");
	set(1, CONV, INT, BIAS + 1, INT << 5 | NUM | 0x800 | 3 << 12);
	check_instruction(1, "0001          int CONV   0001  int.num sext check");
}

/* Arguments that lead back to themselves. */
static void check_endless(void)
{
	struct listing_text written;
	char *line;

	set(2, CARG, NIL, BIAS + 2, BIAS + 4);
	set(1, CALLL, INT, BIAS + 2, 0);
	assert_true(listing_text_begin(&written));
	assert_true(ir_text_instruction(text(), BIAS + 1, written.out));
	line = listing_text_end(&written);
	assert_non_null(strstr(line, "(... 0004 0004"));
	free(line);
}

static void test_calls(void **state)
{
	(void)state;
	set(2, CARG, NIL, BIAS + 3, BIAS + 4);
	set(3, ADD, INT, BIAS + 1, BIAS + 1);
	set(1, CALLL, INT, BIAS + 2, 0);
	check_instruction(1, "0001          int CALLL  lj_str_cmp  (0003 0004)");
	set(1, CALLL, INT, BIAS - 1, 0);
	check_instruction(1, "0001          int CALLL  lj_str_cmp  ()");
	made.source.numbering = NUMBERING_UNKNOWN;
	check_instruction(1, "0001          int CALLL  #0          ()");
	check_endless();
}

static void check_snapshot(const char *wanted)
{
	struct listing_text written;
	char *line;

	assert_true(listing_text_begin(&written));
	assert_true(ir_text_snapshot(text(), 0, written.out));
	line = listing_text_end(&written);
	assert_string_equal(line, wanted);
	free(line);
}

static void test_snapshots(void **state)
{
	struct listing_text written;

	(void)state;
	put((size_t)layout.GCtrace_nsnap, 1, 2);
	put((size_t)layout.GCtrace_nsnapmap, MAP_ENTRIES, 4);
	put(SNAPS_AT + 4, BIAS + 1, 2);
	put(SNAPS_AT + 8, 6, 1);
	put(SNAPS_AT + 10, 3, 1);
	set_wide(-2, KNUM, NUM, 3);
	put(MAP_AT, 0x1057fff, 4); /* SNAP(1, SNAP_FRAME | SNAP_NORESTORE, REF_NIL) */
	put(MAP_AT + 4, 0x03000000 | (BIAS + 7), 4);
	put(MAP_AT + 8, 0x05010000 | (BIAS - 2), 4);
	check_snapshot("....              SNAP   #0   [ ---- ----|---- 0007 ---- ftsz|]");
	put(MAP_AT + 8, 0x05020000 | (BIAS - 2), 4);
	check_snapshot("....              SNAP   #0   [ ---- ----|---- 0007 ---- contpc ]");
	assert_true(listing_text_begin(&written));
	assert_false(ir_text_snapshot(text(), 1, written.out));
	free(listing_text_end(&written));
}

static void test_numberings(void **state)
{
	struct layout other = layout;

	(void)state;
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.0-beta3"), NUMBERING_V21);
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.1737090214"), NUMBERING_V21);
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.1990000000"), NUMBERING_UNKNOWN);
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.1737090214x"), NUMBERING_UNKNOWN);
	assert_int_equal(ir_numbering(&other, ""), NUMBERING_UNKNOWN);
	other.L_exdata = other.L_exdata2 = 100;
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.0-beta3"), NUMBERING_LUAJIT2);
	other = layout;
	other.SnapShot_mcofs = LAYOUT_ABSENT;
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.0-beta3"), NUMBERING_UNKNOWN);
	other.GCstr_len = 16;
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.0-beta3"), NUMBERING_BETA3);
	assert_string_equal(ir_call_name(NUMBERING_BETA3, 0), "lj_str_cmp");
	assert_null(ir_call_name(NUMBERING_BETA3, 103));
	assert_string_equal(ir_fpmath_name(NUMBERING_LUAJIT2, 0), "floor");
	assert_null(ir_field_name(NUMBERING_UNKNOWN, 0));
	assert_null(ir_field_name(NUMBERING_V21, 1000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_locations_and_flags, make_trace, free_trace),
		cmocka_unit_test_setup_teardown(test_constants, make_trace, free_trace),
		cmocka_unit_test_setup_teardown(test_strings, make_trace, free_trace),
		cmocka_unit_test_setup_teardown(test_literals_have_names_by_build, make_trace, free_trace),
		cmocka_unit_test_setup_teardown(test_calls, make_trace, free_trace),
		cmocka_unit_test_setup_teardown(test_snapshots, make_trace, free_trace),
		cmocka_unit_test(test_numberings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
