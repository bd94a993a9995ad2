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

static const struct layout of_2021 = {
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
	.GCudata_size = 40,
};
static struct layout layout;

/* Numbers of opcodes in 2.1 since 2021. */
enum {
	NOP = 12,
	PVAL = 14,
	GCSTEP = 15,
	LOOP = 17,
	KPRI = 22,
	KINT = 23,
	KGC = 24,
	KPTR = 25,
	KKPTR = 26,
	KNULL = 27,
	KNUM = 28,
	KINT64 = 29,
	KSLOT = 30,
	BNOT = 31,
	ADD = 41,
	FPMATH = 52,
	UREFO = 60,
	UREFC = 61,
	TMPREF = 63,
	FLOAD = 69,
	XLOAD = 70,
	SLOAD = 71,
	TNEW = 81,
	CNEW = 83,
	BUFHDR = 85,
	CONV = 91,
	CONV_OF_2020 = 90,
	TOSTR = 93,
	CALLL = 97,
	CALLXS = 99,
	CARG = 100,
};

enum {
	NIL = 0,
	FALSE = 1,
	TRUE = 2,
	STR = 4,
	THREAD = 6,
	PROTO = 7,
	FUNCTION = 8,
	TRACE = 9,
	CDATA = 10,
	TAB = 11,
	USERDATA = 12,
	NUM = 14,
	INT = 19,
	I64 = 21,
	U64 = 22,
	GUARD = 0x80,
	PHI = 0x40,
};

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
	layout = of_2021;
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

/* How a constant reads as an operand. */
static void check_constant(int ref, const char *wanted)
{
	char line[128];

	set(1, BNOT, INT, (unsigned)(BIAS + ref), 0);
	snprintf(line, sizeof(line), "0001          int BNOT   %s", wanted);
	check_instruction(1, line);
}

static void constants_of_each_kind_read_as_with_jit_dump(void **state)
{
	(void)state;
	set(-1, KPRI, FALSE, 0, 0);
	check_constant(-1, "false");
	set(-1, KPRI, TRUE, 0, 0);
	check_constant(-1, "true");
	set(-1, KNULL, TAB, 0, 0);
	check_constant(-1, "NULL");
	set_wide(-2, KPTR, INT, 0x1234);
	check_constant(-2, "[0x00001234]");
	set_wide(-2, KKPTR, INT, 0x7f1234567890);
	check_constant(-2, "[0x7f1234567890]");
	set_wide(-2, KKPTR, INT, 0);
	check_constant(-2, "NULL");
	set_wide(-2, KINT64, I64, 7);
	check_constant(-2, "+7  ");
	set_wide(-2, KINT64, U64, 7);
	check_constant(-2, "7LL ");
	set(-1, KINT, INT, 12345, 0);
	check_constant(-1, "+12345");
}

static void objects_of_each_type_read_as_with_jit_dump(void **state)
{
	static const struct {
		uint8_t type;
		const char *text;
	} objects[] = {
		{ STR, "string: 0x00000abc" },
		{ THREAD, "thread: 0x00000abc" },
		{ PROTO, "proto: 0x00000abc" },
		{ FUNCTION, "(?) " },
		{ TRACE, "trace: 0x00000abc" },
		{ CDATA, "cdata: 0x00000abc" },
		{ TAB, "{0x00000abc}" },
		{ USERDATA, "userdata:0x00000ae4" }, /* what is behind its head */
		{ NUM, "?0x00000abc" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
		set_wide(-2, KGC, objects[i].type, 0xabc);
		check_constant(-2, objects[i].text);
	}
}

static void a_constant_for_a_slot_has_its_number(void **state)
{
	(void)state;
	set(-1, KINT, INT, 5, 0);
	set(-2, KSLOT, INT, BIAS - 1, 52);
	check_constant(-2, "+5   @52");
	set(-2, KSLOT, INT, BIAS - 1, 0);
	check_constant(-2, "+5   @0");
}

static void what_is_no_constant_is_unknown(void **state)
{
	(void)state;
	/* Below the first one. */
	check_constant(-CONSTANTS - 1, "?   ");
	/* An instruction among constants. */
	set(-1, ADD, INT, 0, 0);
	check_constant(-1, "?   ");
	/* A slot's constant that is an instruction, the first one, or is not there. */
	set(-1, KINT, INT, 5, 0);
	set(-2, KSLOT, INT, BIAS + 1, 52);
	check_constant(-2, "?   ");
	set(-2, KSLOT, INT, BIAS, 52);
	check_constant(-2, "?   ");
	set(-2, KSLOT, INT, BIAS - CONSTANTS - 1, 52);
	check_constant(-2, "?   ");
	/* The first and the last one are. */
	set(-CONSTANTS, KINT, INT, 6, 0);
	check_constant(-CONSTANTS, "+6  ");
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

/* How an instruction's second operand reads. */
static void check_literal(uint8_t op, const char *name, unsigned literal, const char *wanted)
{
	char line[128];

	set(1, op, INT, BIAS + 1, literal);
	snprintf(line, sizeof(line), "0001          int %-6s 0001  %s", name, wanted);
	check_instruction(1, line);
}

static void literals_read_as_with_jit_dump(void **state)
{
	static const char *const loads[] = { "", "R", "V", "RV", "U", "RU", "VU", "RVU", "#8  " };
	static const char *const references[] = {
		"", "IN", "OUT", "INOUT", "", "", "OUT2", "INOUT2", "#8  "
	};
	static const char *const buffers[] = { "RESET", "APPEND", "WRITE", "#3  " };
	static const char *const texts[] = { "INT", "NUM", "CHAR", "#3  " };

	(void)state;
	for (unsigned i = 0; i <= 8; i++) {
		check_literal(XLOAD, "XLOAD", i, loads[i]);
		check_literal(TMPREF, "TMPREF", i, references[i]);
	}
	for (unsigned i = 0; i <= 3; i++) {
		check_literal(BUFHDR, "BUFHDR", i, buffers[i]);
		check_literal(TOSTR, "TOSTR", i, texts[i]);
	}
	check_literal(FPMATH, "FPMATH", 0, "floor");
	check_literal(FPMATH, "FPMATH", 77, "#77 ");
	check_literal(FLOAD, "FLOAD", 0xffff, "#65535");
	/* The slot is above a hash of the upvalue. */
	check_literal(UREFO, "UREFO", 3 << 8 | 0xff, "#3  ");
	check_literal(UREFC, "UREFC", 3 << 8 | 0xff, "#3  ");
}

static void slots_are_loaded_with_flags(void **state)
{
	static const char *const flags[] = { "", "P", "F", "PF", "T", "C", "R", "I", "K", "PFTCRIK" };
	static const unsigned literals[] = { 0, 1, 2, 3, 4, 8, 16, 32, 64, 127 };

	(void)state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		char line[64];

		set(1, SLOAD, INT, 4, literals[i]);
		snprintf(line, sizeof(line), "0001          int SLOAD  #4    %s", flags[i]);
		check_instruction(1, line);
	}
}

static void conversions_tell_how_they_check(void **state)
{
	const unsigned types = INT << 5 | NUM;

	(void)state;
	check_literal(CONV, "CONV", types, "int.num");
	check_literal(CONV, "CONV", types | 0x800, "int.num sext");
	check_literal(CONV, "CONV", types | 1 << 12, "int.num none");
	check_literal(CONV, "CONV", types | 2 << 12, "int.num index");
	check_literal(CONV, "CONV", types | 3 << 12, "int.num check");
	check_literal(CONV, "CONV", types | 4 << 12, "int.num");
	/* Before 2021, in higher bits. */
	layout.SnapShot_mcofs = LAYOUT_ABSENT;
	check_literal(CONV_OF_2020, "CONV", types | 1 << 14, "int.num");
	check_literal(CONV_OF_2020, "CONV", types | 2 << 14, "int.num index");
	check_literal(CONV_OF_2020, "CONV", types | 3 << 14, "int.num check");
}

static void instructions_have_the_operands_that_they_have(void **state)
{
	(void)state;
	set(1, GCSTEP, NIL, 7, 8);
	check_instruction(1, "0001          nil GCSTEP ");
	set(1, PVAL, INT, 7, 8);
	check_instruction(1, "0001          int PVAL   #7  ");
	set(1, TNEW, TAB, 7, 8);
	check_instruction(1, "0001          tab TNEW   #7    #8  ");
	set(1, CNEW, CDATA, BIAS + 2, BIAS - 1);
	check_instruction(1, "0001          cdt CNEW   0002");
	set(1, CNEW, CDATA, BIAS + 2, BIAS + 3);
	check_instruction(1, "0001          cdt CNEW   0002  0003");
}

static void what_jit_dump_leaves_out_is_left_out(void **state)
{
	static const int refs[] = { 1, 2, INSTRUCTIONS, -CONSTANTS - 1 };

	(void)state;
	set(1, NOP, NIL, 0, 0);
	set(2, CARG, NIL, BIAS + 1, BIAS + 1);
	for (size_t i = 0; i < sizeof(refs) / sizeof(refs[0]); i++) {
		struct listing_text written;

		assert_true(listing_text_begin(&written));
		assert_false(ir_text_instruction(text(), (uint32_t)(BIAS + refs[i]), written.out));
		free(listing_text_end(&written));
		assert_int_equal(written.length, 0);
	}
}

static void a_result_is_in_a_register_on_the_stack_or_nowhere(void **state)
{
	static const struct {
		uint8_t reg, spill;
		const char *place;
	} places[] = {
		{ 0, 0, "rax   " },    { 1, 0, "      " }, /* no register of this machine */
		{ 0x7f, 0, "      " }, { 0x80, 0, "      " },  { 0, 1, "[4]   " },   { 0x80, 255, "[3fc] " },
		{ 253, 0, " {sink" },  { 253, 255, " {sink" }, { 254, 0, " {sink" }, { 254, 3, " {0002" },
		{ 253, 1, " {0004" },  { 252, 0, "      " },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char line[64];

		set(5, ADD, INT | GUARD, BIAS + 2, BIAS + 3);
		put(HEADER + (CONSTANTS + 5) * IR_SIZE + 6, places[i].reg, 1);
		put(HEADER + (CONSTANTS + 5) * IR_SIZE + 7, places[i].spill, 1);
		snprintf(line, sizeof(line), "0005 %s%c  int ADD    0002  0003", places[i].place,
			 places[i].reg == 253 || places[i].reg == 254 ? '}' : '>');
		check_instruction(5, line);
	}
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

static void calls_of_native_code_name_its_address(void **state)
{
	(void)state;
	set_wide(-2, KINT64, I64, 0x7f1234567890);
	set(1, CALLXS, INT, BIAS - 1, BIAS - 2);
	check_instruction(1, "0001          int CALLXS [0x7f1234567890]()");
	/* One that is computed; with a C type, which is the second of a pair. */
	set(1, CALLXS, INT, BIAS - 1, BIAS + 3);
	check_instruction(1, "0001          int CALLXS 0003 ()");
	set(-3, KINT, INT, 96, 0);
	set(3, CARG, NIL, BIAS - 2, BIAS - 3);
	check_instruction(1, "0001          int CALLXS [0x7f1234567890]() ctype +96 ");
	set(3, CARG, NIL, BIAS + 4, BIAS - 3);
	check_instruction(1, "0001          int CALLXS 0004 () ctype +96 ");
	/* A pair of another type is none. */
	set(3, CARG, INT, BIAS + 4, BIAS - 3);
	check_instruction(1, "0001          int CALLXS 0003 ()");
	set(1, CALLXS, INT, BIAS + 2, BIAS - CONSTANTS - 1);
	check_instruction(1, "0001          int CALLXS ?(0002)");
}

static void arguments_are_in_the_order_of_the_call(void **state)
{
	(void)state;
	set(1, CALLL, INT, BIAS + 2, 0);
	set(2, CARG, NIL, BIAS + 5, BIAS + 6);
	check_instruction(1, "0001          int CALLL  lj_str_cmp  (0005 0006)");
	set(2, CARG, NIL, BIAS + 3, BIAS + 6);
	set(3, CARG, NIL, BIAS + 5, BIAS + 7);
	check_instruction(1, "0001          int CALLL  lj_str_cmp  (0005 0007 0006)");
	set(-1, KINT, INT, 9, 0);
	set(3, CARG, NIL, BIAS - 1, BIAS + 7);
	check_instruction(1, "0001          int CALLL  lj_str_cmp  (+9   0007 0006)");
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
	/* A number of two halves is two instructions. */
	put(MAP_AT + 4, 0x03080000 | (BIAS + 7), 4);
	check_snapshot("....              SNAP   #0   [ ---- ----|---- 0007/0008 ---- contpc ]");
	/* An integer in a frame's place, and a constant of the program. */
	set(-1, KINT, INT, 5, 0);
	put(MAP_AT + 4, 0x03000000 | (BIAS - 1), 4);
	put(MAP_AT + 8, 0x05010000 | (BIAS - 1), 4);
	check_snapshot("....              SNAP   #0   [ ---- ----|---- +5   ---- ftsz|]");
	put(MAP_AT + 8, 0x05020000 | (BIAS - 1), 4);
	check_snapshot("....              SNAP   #0   [ ---- ----|---- +5   ---- contpc ]");
	/* A frame below others, of a function. */
	put(MAP_AT + 4, 0x03010000 | (BIAS + 7), 4);
	check_snapshot("....              SNAP   #0   [ ---- ----|---- 0007|---- contpc ]");
	assert_true(listing_text_begin(&written));
	assert_false(ir_text_snapshot(text(), 1, written.out));
	free(listing_text_end(&written));
	assert_int_equal(written.length, 0);
}

static void test_numberings(void **state)
{
	struct layout other = of_2021;

	(void)state;
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.0-beta3"), NUMBERING_V21);
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.1737090214"), NUMBERING_V21);
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.1990000000"), NUMBERING_UNKNOWN);
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.1"), NUMBERING_V21);
	/* The last one that is known. */
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.1761786044"), NUMBERING_V21);
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.1761786045"), NUMBERING_UNKNOWN);
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.0"), NUMBERING_UNKNOWN);
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.2.1737090214"), NUMBERING_UNKNOWN);
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.111737090214"), NUMBERING_UNKNOWN);
	assert_int_equal(ir_numbering(&other, "Luajit 2.1.1737090214"), NUMBERING_UNKNOWN);
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.1737090214x"), NUMBERING_UNKNOWN);
	assert_int_equal(ir_numbering(&other, ""), NUMBERING_UNKNOWN);
	other.L_exdata = other.L_exdata2 = 100;
	assert_int_equal(ir_numbering(&other, "LuaJIT 2.1.0-beta3"), NUMBERING_LUAJIT2);
	other = of_2021;
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_trace, free_trace)
	const struct CMUnitTest tests[] = {
		TEST(test_locations_and_flags),
		TEST(test_constants),
		TEST(constants_of_each_kind_read_as_with_jit_dump),
		TEST(objects_of_each_type_read_as_with_jit_dump),
		TEST(a_constant_for_a_slot_has_its_number),
		TEST(what_is_no_constant_is_unknown),
		TEST(test_strings),
		TEST(test_literals_have_names_by_build),
		TEST(literals_read_as_with_jit_dump),
		TEST(slots_are_loaded_with_flags),
		TEST(conversions_tell_how_they_check),
		TEST(instructions_have_the_operands_that_they_have),
		TEST(what_jit_dump_leaves_out_is_left_out),
		TEST(a_result_is_in_a_register_on_the_stack_or_nowhere),
		TEST(calls_of_native_code_name_its_address),
		TEST(arguments_are_in_the_order_of_the_call),
		TEST(test_calls),
		TEST(test_snapshots),
		cmocka_unit_test(test_numberings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
