/* SPDX-License-Identifier: MIT */
/*
 * Prototypes that cannot be as they are: one that is made up, among the objects of a kept heap
 * (test_heap_read.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/bytecode.h"
#include "tests/unit/kept_fields.h"
#include "tests/unit/kept_lies.h"
#include "unwind/lua/luajit.h"

enum {
	PROTO = 0x20000000, /* on pages of which nothing is kept */
	INNER = 0x20100000,
	PAGE = 4096,
	INSTRUCTION = 4,
	SLOT = 8,
	LOOKED_AT_MAX = 4096, /* instructions, or lines, of one prototype */
	NAMES_BYTES_MAX = 1 << 16,
	CHILD = 1, /* flags of a prototype */
	VARARG = 2,
	FRAME_SIZE = 3,
	FIRST_LINE = 10,
};

/* A prototype; its parts follow one another in this order. */
static struct {
	const enum bytecode_op *ops; /* behind the header, with D 0 */
	size_t count;                /* of instructions, with the header; all but ops are MOVs */
	uint32_t sizekgc, sizekn;
	uint8_t sizeuv, numparams, flags;
	enum bytecode_op header;
	const uint8_t *lines; /* of the first instructions behind the header, from FIRST_LINE on; others: 0 */
	size_t lines_count;
	uint32_t numline;
	const char *names; /* of upvalues, each with its NUL */
	size_t names_length;
	const char *variables;
	size_t variables_length;
	bool is_stripped;
} made;

static uint64_t part_k, part_uv, part_lineinfo, part_uvinfo, part_varinfo, part_end;

#define NAMES(text) made.names = (text), made.names_length = sizeof(text) - 1
/* The last NUL ends the list. */
#define VARIABLES(text) made.variables = (text), made.variables_length = sizeof(text)

static void make(void)
{
	memset(&made, 0, sizeof(made));
	made.count = 3;
	made.header = BC_FUNCF;
	made.numline = 5;
	NAMES("");
	VARIABLES("");
}

static void put(uint64_t at, uint64_t value, size_t size)
{
	kept_pages_put(&kept_state, at, value, size);
}

static void put_field(int32_t field, uint64_t value, unsigned size)
{
	put(PROTO + (uint64_t)field, value, size ? size : layout_ref_size(layout));
}

static uint32_t instruction_of(enum bytecode_op op, uint8_t a, uint16_t d)
{
	return (uint32_t)bytecode_number(layout, op) | (uint32_t)a << 8 | (uint32_t)d << 16;
}

static unsigned line_width(void)
{
	return made.numline < 256 ? 1 : made.numline < 65536 ? 2 : 4;
}

static void put_parts(void)
{
	const uint64_t bytecode = PROTO + (uint64_t)layout->GCproto_size;
	const unsigned ref = layout_ref_size(layout);

	put(bytecode, instruction_of(made.header, FRAME_SIZE, 0), INSTRUCTION);
	for (size_t i = 1; i < made.count; i++)
		put(bytecode + i * INSTRUCTION, instruction_of(made.ops ? made.ops[i - 1] : BC_MOV, 0, 0),
		    INSTRUCTION);
	part_k = (bytecode + made.count * INSTRUCTION + made.sizekgc * ref + SLOT - 1) & ~UINT64_C(7);
	part_uv = part_k + made.sizekn * (uint64_t)SLOT;
	part_lineinfo = part_uv + (made.sizeuv + 1U) / 2 * 4;
	part_uvinfo = part_lineinfo + (made.count - 1) * line_width();
	part_varinfo = part_uvinfo + made.names_length;
	part_end = part_varinfo + made.variables_length;
	if (made.is_stripped) {
		part_end = part_lineinfo;
		part_lineinfo = part_uvinfo = part_varinfo = 0;
		return;
	}
	for (size_t i = 0; i + 1 < made.count; i++)
		put(part_lineinfo + i * line_width(), i < made.lines_count ? made.lines[i] : 0, line_width());
	kept_pages_put_bytes(&kept_state, part_uvinfo, made.names, made.names_length);
	kept_pages_put_bytes(&kept_state, part_varinfo, made.variables, made.variables_length);
}

/* Put it where the newest prototype is looked for: behind the object that was made last. */
static void put_made(void)
{
	const uint64_t next = (uint64_t)layout->GChead_nextgc;

	put_parts();
	put_field(layout->GChead_gct, GCT_PROTO, 1);
	put_field(layout->GChead_marked, get_of(GCT_PROTO, layout->GChead_marked, 1), 1);
	put_field(layout->GCproto_numparams, made.numparams, 1);
	put_field(layout->GCproto_framesize, FRAME_SIZE, 1);
	put_field(layout->GCproto_sizebc, made.count, 4);
	put_field(layout->GCproto_k, part_k, 0);
	put_field(layout->GCproto_uv, part_uv, 0);
	put_field(layout->GCproto_sizekgc, made.sizekgc, 4);
	put_field(layout->GCproto_sizekn, made.sizekn, 4);
	put_field(layout->GCproto_sizept, part_end - PROTO, 4);
	put_field(layout->GCproto_sizeuv, made.sizeuv, 1);
	put_field(layout->GCproto_flags, made.flags, 1);
	put_field(layout->GCproto_chunkname, get_of(GCT_PROTO, layout->GCproto_chunkname, 0), 0);
	put_field(layout->GCproto_firstline, FIRST_LINE, 4);
	put_field(layout->GCproto_numline, made.numline, 4);
	put_field(layout->GCproto_lineinfo, part_lineinfo, 0);
	put_field(layout->GCproto_uvinfo, part_uvinfo, 0);
	put_field(layout->GCproto_varinfo, part_varinfo, 0);
	if (kept_reference(kept_last + next) == PROTO)
		return;
	put_field(layout->GChead_nextgc, kept_reference(kept_last + next), 0);
	put(kept_last + next, PROTO, layout_ref_size(layout));
}

static void expect(bool passes, const char *reason)
{
	kept_expect(SELFTEST_OBJECTS, passes ? SELFTEST_PASSED : SELFTEST_FAILED, passes ? "" : reason);
}

static void expect_made(bool passes, const char *reason)
{
	put_made();
	expect(passes, reason);
}

/* With each of these in a field, and then again what was there. */
static void expect_field(int32_t field, unsigned size, uint64_t right, int64_t step, const char *reason)
{
	for (int sign = -1; sign <= 1; sign++) {
		put_field(field, right + (uint64_t)(sign * step), size);
		expect(sign == 0, reason);
	}
	put_field(field, right, size);
}

/*---- The block ----*/

/* Numbers begin at the next slot behind the constants. */
static void vary_constants(void)
{
	make();
	for (made.count = 2; made.count < 6; made.count++)
		for (made.sizekgc = 0; made.sizekgc < 4; made.sizekgc++) {
			put_made();
			expect_field(layout->GCproto_k, 0, part_k, SLOT, "GCproto.k is not");
			expect_field(layout->GCproto_k, 0, part_k, 4, "GCproto.k is not");
		}
	make();
	for (made.sizekn = 0; made.sizekn < 3; made.sizekn++) {
		put_made();
		expect_field(layout->GCproto_uv, 0, part_uv, SLOT, "GCproto.uv is not");
	}
}

/* Two bytes for each upvalue, in words. */
static void vary_upvalues(void)
{
	static const char names[] = "a\0b\0c\0d\0";

	make();
	made.names = names;
	for (made.sizeuv = 0; made.sizeuv <= 4; made.sizeuv++) {
		made.names_length = 2U * made.sizeuv;
		put_made();
		expect_field(layout->GCproto_lineinfo, 0, part_lineinfo, 1, "GCproto.lineinfo is not");
		expect_field(layout->GCproto_uvinfo, 0, part_uvinfo, 1, "GCproto.uvinfo is not");
		made.is_stripped = true;
		put_made();
		expect(true, "");
		put_field(layout->GCproto_sizept, part_end - PROTO - 1, 4);
		expect(false, "GCproto.sizept is too small");
		/* What is behind it is nobody's. */
		put_field(layout->GCproto_sizept, part_end - PROTO + 8, 4);
		expect(true, "");
		made.is_stripped = false;
	}
}

/* A line takes as many bytes as the number of lines. */
static void vary_lines(void)
{
	static const uint32_t numlines[] = { 0, 255, 256, 65535, 65536 };

	make();
	for (size_t i = 0; i < sizeof(numlines) / sizeof(numlines[0]); i++) {
		made.numline = numlines[i];
		put_made();
		expect_field(layout->GCproto_uvinfo, 0, part_uvinfo, 1, "GCproto.uvinfo is not");
		put(part_lineinfo + line_width(), made.numline, line_width());
		expect(true, "");
		if (made.numline == 255 || made.numline == 65535)
			continue; /* the last number of that width */
		put(part_lineinfo + line_width(), made.numline + 1, line_width());
		expect(false, "GCproto.numline is less than a line");
	}
}

static void vary_names(void)
{
	make();
	NAMES("up\0");
	made.sizeuv = 1;
	put_made();
	expect(true, "");
	put_field(layout->GCproto_varinfo, part_uvinfo - 1, 0);
	expect(false, "GCproto.varinfo is not behind the upvalue names");
	put_field(layout->GCproto_varinfo, part_end, 0);
	expect(false, "GCproto.varinfo is not behind the upvalue names");
	put_field(layout->GCproto_varinfo, part_end - 1, 0);
	expect(true, "");
	put(part_end - 1, 1, 1);
	expect(false, "GCproto.sizept does not end with the variable names");
	made.sizeuv = 2;
	expect_made(false, "GCproto.uvinfo holds 1 names for 2 upvalues");
	NAMES("up\0up\0up\0");
	expect_made(false, "GCproto.uvinfo holds 3 names for 2 upvalues");
	NAMES("up\0\0");
	expect_made(true, "");
	/* No instruction at all, not even a header. */
	make();
	put_made();
	put_field(layout->GCproto_sizebc, 0, 4);
	put_field(layout->GCproto_k, PROTO + (uint64_t)layout->GCproto_size, 0);
	expect(false, "GCproto.k is not");
}

static void the_parts_of_a_block_follow_one_another(void **state)
{
	(void)state;
	in_each(vary_constants);
	in_each(vary_upvalues);
	in_each(vary_lines);
	in_each(vary_names);
}

/* So many that they are not read. */
static void make_long_names(void)
{
	static char names[NAMES_BYTES_MAX + 1];

	memset(names, 'n', sizeof(names));
	make();
	made.names = names;
	made.names_length = NAMES_BYTES_MAX;
	made.sizeuv = 1;
	expect_made(false, "GCproto.uvinfo holds 0 names for 1 upvalues");
	kept_pages_forget(&kept_state, part_uvinfo + NAMES_BYTES_MAX / 2);
	expect(false, "GCproto.uvinfo cannot be read");
	made.names_length++;
	expect_made(true, "");
}

static void names_of_upvalues_are_counted_unless_there_are_very_many(void **state)
{
	(void)state;
	in_each(make_long_names);
}

/*---- Lines ----*/

static void vary_first_lines(void)
{
	make();
	put_made();
	put_field(layout->GCproto_firstline, INT32_MAX, 4);
	expect(true, "");
	put_field(layout->GCproto_firstline, UINT32_C(1) << 31, 4);
	expect(false, "GCproto.firstline is beyond belief");
	/* What was made without a text. */
	put_field(layout->GCproto_firstline, UINT32_MAX, 4);
	expect(true, "");
	put_field(layout->GCproto_firstline, UINT32_MAX - 1, 4);
	expect(false, "GCproto.firstline is beyond belief");
}

static void a_function_begins_at_a_line(void **state)
{
	(void)state;
	in_each(vary_first_lines);
}

/* Of a very long function, the first instructions tell. */
static void make_long_functions(void)
{
	const uint64_t bytecode = PROTO + (uint64_t)layout->GCproto_size;

	make();
	made.count = LOOKED_AT_MAX + 2;
	expect_made(true, "");
	put(part_lineinfo + LOOKED_AT_MAX, 6, 1);
	expect(true, "");
	put(part_lineinfo + LOOKED_AT_MAX - 1, 6, 1);
	expect(false, "GCproto.numline is less than a line");
	put(part_lineinfo + LOOKED_AT_MAX - 1, 0, 1);
	/* It may make a function where it is not looked at. */
	put(bytecode + (uint64_t)LOOKED_AT_MAX * INSTRUCTION, instruction_of(BC_FNEW, 0, 0), INSTRUCTION);
	expect(true, "");
	put_field(layout->GCproto_flags, CHILD, 1);
	expect(true, "");
	put_field(layout->GCproto_flags, 0, 1);
	put(bytecode + (uint64_t)(LOOKED_AT_MAX - 1) * INSTRUCTION, instruction_of(BC_FNEW, 0, 0),
	    INSTRUCTION);
	expect(false, "a constant before GCproto.k");
	/* If all is looked at, the flag is judged. */
	make();
	made.count = LOOKED_AT_MAX;
	expect_made(true, "");
	put_field(layout->GCproto_flags, CHILD, 1);
	expect(false, "GCproto.flags is wrong about inner functions");
	/* It ends where nothing can be read. */
	make();
	made.count = LOOKED_AT_MAX;
	put_made();
	kept_pages_forget(&kept_state, part_lineinfo + LOOKED_AT_MAX / 2);
	expect(false, "GCproto.lineinfo cannot be read");
	make();
	made.is_stripped = true;
	made.count = LOOKED_AT_MAX;
	put_made();
	kept_pages_forget(&kept_state, bytecode + PAGE);
	expect(false, "GCproto.sizebc is more than there is");
}

static void of_a_long_function_the_first_instructions_are_looked_at(void **state)
{
	(void)state;
	in_each(make_long_functions);
}

/*---- The header ----*/

static void vary_headers(void)
{
	static const struct {
		enum bytecode_op op;
		bool is_one, takes_more;
	} headers[] = {
		{ BC_JMP, false, false },   { BC_FUNCF, true, false }, { BC_IFUNCF, true, false },
		{ BC_JFUNCF, true, false }, { BC_FUNCV, true, true },  { BC_IFUNCV, true, true },
		{ BC_JFUNCV, true, true },  { BC_FUNCC, false, true },
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		for (int takes_more = 0; takes_more <= 1; takes_more++) {
			make();
			made.header = headers[i].op;
			made.flags = takes_more ? VARARG : 0;
			expect_made(headers[i].is_one && headers[i].takes_more == takes_more,
				    headers[i].is_one ? "GCproto.flags disagrees with the function header"
						      : "GCproto.size: no function header there");
		}
	/* All its parameters may be on the stack, and nothing else. */
	make();
	made.numparams = FRAME_SIZE;
	made.is_stripped = true;
	expect_made(true, "");
	put_field(layout->GCproto_numparams, FRAME_SIZE + 1, 1);
	expect(false, "GCproto.framesize");
}

static void a_function_begins_with_a_header(void **state)
{
	(void)state;
	in_each(vary_headers);
}

/*---- Variables ----*/

#define LONGEST "\xff\xff\xff\xff\x0f"

static void vary_variables(void)
{
	const char *const none = "GCproto.varinfo does not hold variables";

	make();
	made.numparams = 2;
	/* Names, with when their scope begins and how long it is. */
	VARIABLES("a\0\0\4b\0\0\4"
		  "c\0\1\2");
	expect_made(true, "");
	made.numparams = 1;
	expect_made(false, "GCproto.numparams is 1, with 2 parameters in GCproto.varinfo");
	made.numparams = 3;
	expect_made(false, "GCproto.numparams is 3, with 2 parameters in GCproto.varinfo");
	made.numparams = 1;
	VARIABLES("a\0\0\4b\0\x80\1\4"
		  "c\0\0\4");
	expect_made(true, "");
	VARIABLES("a\0\0" LONGEST);
	expect_made(true, "");
	VARIABLES("a\0\0\xff\xff\xff\xff\xff\1");
	expect_made(false, none);
	VARIABLES("a\0\xff\xff\xff\xff\xff\1\4");
	expect_made(false, none);
	/* LuaJIT's own names are one byte, the last one 6. */
	VARIABLES("\6\0\4\6\1\4");
	expect_made(true, "");
	VARIABLES("\7\0\0\4");
	expect_made(true, "");
	/* A name, or a number, that does not end; a list that does not. */
	VARIABLES("a\0\0\4b");
	expect_made(false, none);
	VARIABLES("a\0\0\4b\0\x80");
	expect_made(false, none);
	made.numparams = 0;
	VARIABLES("");
	expect_made(true, "");
	VARIABLES("a\0\0");
	expect_made(false, none);
}

static void parameters_are_the_variables_that_begin_with_the_function(void **state)
{
	(void)state;
	in_each(vary_variables);
}

/*---- Functions in it ----*/

static void put_inner(uint32_t first, uint32_t lines)
{
	put(INNER + (uint64_t)layout->GChead_gct, GCT_PROTO, 1);
	put(INNER + (uint64_t)layout->GCproto_firstline, first, 4);
	put(INNER + (uint64_t)layout->GCproto_numline, lines, 4);
}

/* From line 10 to 15, with an instruction on line 13 that makes the function of the first constant. */
static void make_inner(void)
{
	static const enum bytecode_op ops[] = { BC_MOV, BC_FNEW, BC_RET0 };
	static const uint8_t lines[] = { 1, 3, 5 };

	make();
	made.ops = ops;
	made.count = 4;
	made.sizekgc = 2;
	made.flags = CHILD;
	made.lines = lines;
	made.lines_count = sizeof(lines);
	put_made();
	put(part_k - layout_ref_size(layout), INNER, layout_ref_size(layout));
}

static void vary_inner(void)
{
	static const struct {
		uint32_t first, lines;
		const char *reason;
	} inner[] = {
		{ 13, 0, "" },
		{ 13, 2, "" }, /* it is made where it begins, */
		{ 11, 2, "" }, /* ... or where it ends */
		{ 10, 3, "" },
		{ 9, 4, "is not within the outer one" },
		{ 13, 3, "is not within the outer one" },
		{ 12, 0, "is not where it is made" },
		{ 14, 1, "is not where it is made" },
		{ 11, 4, "is not where it is made" },
	};
	const unsigned ref = layout_ref_size(layout);

	make_inner();
	for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++) {
		put_inner(inner[i].first, inner[i].lines);
		expect(!*inner[i].reason, inner[i].reason);
	}
	put_inner(13, 0);
	put_field(layout->GCproto_flags, 0, 1);
	expect(false, "GCproto.flags is wrong about inner functions");
	put_field(layout->GCproto_flags, CHILD, 1);
	expect(true, "");
	/* It is another constant. */
	put(PROTO + (uint64_t)layout->GCproto_size + 2 * INSTRUCTION, instruction_of(BC_FNEW, 0, 1),
	    INSTRUCTION);
	put(part_k - ref, kept_newest[GCT_TABLE], ref);
	put(part_k - 2 * (uint64_t)ref, INNER, ref);
	expect(true, "");
	put(part_k - 2 * (uint64_t)ref, kept_newest[GCT_TABLE], ref);
	expect(false, "a constant before GCproto.k leads to an object of type");
	/* It is far before all that there is. */
	put(PROTO + (uint64_t)layout->GCproto_size + 2 * INSTRUCTION, instruction_of(BC_FNEW, 0, UINT16_MAX),
	    INSTRUCTION);
	expect(false, "a constant before GCproto.k cannot be read");
}

static void a_function_is_made_within_the_lines_of_the_outer_one(void **state)
{
	(void)state;
	in_each(vary_inner);
}

/* Its lines are not known. */
static void strip_outer(void)
{
	make_inner();
	made.is_stripped = true;
	put_made();
	put(part_k - layout_ref_size(layout), INNER, layout_ref_size(layout));
	put_inner(3, 100);
	expect(true, "");
	put(INNER + (uint64_t)layout->GChead_gct, GCT_TABLE, 1);
	expect(false, "a constant before GCproto.k leads to an object of type");
}

static void without_lines_only_the_functions_type_is_told(void **state)
{
	(void)state;
	in_each(strip_outer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_parts_of_a_block_follow_one_another),
		cmocka_unit_test(names_of_upvalues_are_counted_unless_there_are_very_many),
		cmocka_unit_test(a_function_begins_at_a_line),
		cmocka_unit_test(of_a_long_function_the_first_instructions_are_looked_at),
		cmocka_unit_test(a_function_begins_with_a_header),
		cmocka_unit_test(parameters_are_the_variables_that_begin_with_the_function),
		cmocka_unit_test(a_function_is_made_within_the_lines_of_the_outer_one),
		cmocka_unit_test(without_lines_only_the_functions_type_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
