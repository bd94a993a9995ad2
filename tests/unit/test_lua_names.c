/* SPDX-License-Identifier: MIT */
/* Names that a prototype has for what it calls, for its variables and its upvalues; its lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/made_up_memory.h"
#include "tests/unit/made_up_proto.h"
#include "unwind/lua/lua_names.h"

enum {
	PROTO = MADE_UP_AT,
	CONSTANTS = 0x80, /* k: the string constants lie below it */
	UPVALUES = 0x90,
	VARIABLES = 0xb0,
	LINES = 0xe0,
	CODE = 0x100,
	BYTES = CODE + 0x40,
	STRINGS = MADE_UP_AT + 0x1000,
	STRING_BYTES = 0x200,
	FIRST_LINE = 10,
};

static const struct layout layout = {
	.gc64 = true,
	.bytecode = BYTECODE_V21,
	.GChead_gct = 9,
	.GCstr_len = 20,
	.GCstr_size = 24,
	.GCproto_k = 0x20,
	.GCproto_sizekgc = 0x28,
	.GCproto_sizeuv = 0x2c,
	.GCproto_lineinfo = 0x30,
	.GCproto_uvinfo = 0x38,
	.GCproto_varinfo = 0x40,
};

static uint8_t bytes[BYTES];
static struct proto proto;
static struct memory *memory;
static char name[LUA_NAME_SIZE];

static void put_field(int32_t offset, uint64_t value, size_t size)
{
	memcpy(bytes + offset, &value, size);
}

/* The string constant of an index. */
static void put_constant(size_t i, const char *text)
{
	const uint64_t at = STRINGS + i * STRING_BYTES;

	put_field(CONSTANTS - 8 * (int32_t)(i + 1), at, 8);
	put(at + 9, GCT_STRING, 1);
	put(at + 20, strlen(text), 4);
	put_bytes(at + 24, text, strlen(text));
}

static int begin(void **state)
{
	(void)state;
	memory = made_up_memory_begin();
	memset(bytes, 0, sizeof(bytes));
	put_field(layout.GCproto_k, PROTO + CONSTANTS, 8);
	put_field(layout.GCproto_sizekgc, 2, 4);
	put_field(layout.GCproto_sizeuv, 3, 1);
	put_field(layout.GCproto_uvinfo, PROTO + UPVALUES, 8);
	memcpy(bytes + UPVALUES, "first\0second\0third", sizeof("first\0second\0third"));
	put_constant(0, "print");
	put_constant(1, "insert");
	name[0] = '\0';
	return 0;
}

static void make(const struct bytecode *code, uint32_t count)
{
	make_bytecodes(&proto, &layout, PROTO, bytes, CODE, code, count);
}

static uint64_t pc_of(uint32_t instruction)
{
	return PROTO + CODE + instruction * BYTECODE_SIZE;
}

/* The last instruction calls a function of this name; NULL: of none. */
static void check_call(const struct bytecode *code, uint32_t count, const char *wanted)
{
	make(code, count);
	assert_int_equal(lua_call_name(memory, &layout, &proto, pc_of(count - 1), name), wanted != NULL);
	if (wanted)
		assert_string_equal(name, wanted);
}

#define CHECK_CALL(wanted, ...) \
	do { \
		const struct bytecode code[] = { { .op = BC_FUNCF }, __VA_ARGS__ }; \
		check_call(code, sizeof(code) / sizeof(code[0]), wanted); \
	} while (0)

static void a_call_is_named_by_what_loaded_the_function(void **state)
{
	(void)state;
	CHECK_CALL("print", { BC_GGET, 2, 0, 0 }, { BC_CALL, 2, 1, 1 });
	CHECK_CALL("insert", { BC_TGETS, 2, 0, 1 }, { BC_CALL, 2, 1, 1 });
	CHECK_CALL("first", { BC_UGET, 2, 0, 0 }, { BC_CALL, 2, 1, 1 });
	CHECK_CALL("third", { BC_UGET, 2, 0, 2 }, { BC_CALL, 2, 1, 1 });
	/* Others came later. */
	CHECK_CALL("print", { BC_GGET, 2, 0, 0 }, { BC_GGET, 3, 0, 1 }, { BC_CALL, 2, 1, 1 });
	CHECK_CALL("insert", { BC_GGET, 2, 0, 0 }, { BC_GGET, 2, 0, 1 }, { BC_CALL, 2, 1, 1 });
}

static void what_was_moved_has_the_name_of_its_origin(void **state)
{
	(void)state;
	CHECK_CALL("print", { BC_GGET, 5, 0, 0 }, { BC_MOV, 2, 0, 5 }, { BC_CALL, 2, 1, 1 });
}

static void what_has_no_origin_has_no_name(void **state)
{
	(void)state;
	CHECK_CALL(NULL, { BC_GGET, 3, 0, 0 }, { BC_CALL, 2, 1, 1 });
	CHECK_CALL(NULL, { BC_GGET, 2, 0, 2 }, { BC_CALL, 2, 1, 1 }); /* no constant */
	CHECK_CALL(NULL, { BC_UGET, 2, 0, 3 }, { BC_CALL, 2, 1, 1 });
	/* What another call has left in the slot. */
	CHECK_CALL(NULL, { BC_GGET, 2, 0, 0 }, { BC_CALL, 1, 2, 1 }, { BC_CALL, 2, 1, 1 });
	/* It is no call. */
	CHECK_CALL(NULL, { BC_GGET, 2, 0, 0 }, { BC_MOV, 2, 0, 5 });
	assert_false(lua_call_name(memory, &layout, &proto, pc_of(3), name));
}

static void an_iterator_lies_three_slots_below(void **state)
{
	(void)state;
	CHECK_CALL("print", { BC_GGET, 2, 0, 0 }, { BC_ITERC, 5, 3, 3 });
	CHECK_CALL(NULL, { BC_GGET, 2, 0, 0 }, { BC_ITERC, 2, 3, 3 });
}

static void a_metamethod_has_the_name_of_its_event(void **state)
{
	(void)state;
	CHECK_CALL("__add", { BC_ADDVV, 2, 0, 1 });
	CHECK_CALL("__index", { BC_TGETS, 2, 0, 1 });
}

static void upvalues_have_names(void **state)
{
	static const char *const names[] = { "first", "second", "third" };
	const char *found = NULL;

	(void)state;
	make((const struct bytecode[]){ { .op = BC_FUNCF } }, 1);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(lua_upvalue_name(&layout, &proto, i, &found));
		assert_string_equal(found, names[i]);
	}
	assert_false(lua_upvalue_name(&layout, &proto, 3, &found));
	put_field(layout.GCproto_uvinfo, 0, 8); /* without debug information */
	assert_false(lua_upvalue_name(&layout, &proto, 0, &found));
}

/* "a" from the first instruction on, up to the third; the limit of a for loop in the second alone. */
static void put_variables(void)
{
	static const uint8_t variables[] = { 'a', 0, 0, 3, 2, 1, 1, 0 };

	put_field(layout.GCproto_varinfo, PROTO + VARIABLES, 8);
	memcpy(bytes + VARIABLES, variables, sizeof(variables));
}

static void variables_have_a_scope(void **state)
{
	const struct bytecode code[] = {
		{ .op = BC_FUNCF }, { .op = BC_GGET }, { .op = BC_GGET }, { .op = BC_GGET }
	};
	struct lua_local locals[LUA_LOCALS_MAX];
	const char *found = NULL;

	(void)state;
	make(code, 4);
	assert_false(lua_has_locals(&layout, &proto));
	assert_int_equal(lua_locals(&layout, &proto, pc_of(0), locals), 0);
	put_variables();
	assert_true(lua_has_locals(&layout, &proto));
	assert_int_equal(lua_locals(&layout, &proto, pc_of(0), locals), 1);
	assert_string_equal(locals[0].name, "a");
	assert_int_equal(locals[0].begin, 0);
	assert_int_equal(locals[0].end, 3);
	assert_int_equal(lua_locals(&layout, &proto, pc_of(1), locals), 2);
	assert_string_equal(locals[1].name, "(for limit)");
	assert_int_equal(lua_locals(&layout, &proto, pc_of(2), locals), 1);
	assert_int_equal(lua_locals(&layout, &proto, pc_of(3), locals), 0);
	assert_true(lua_local_name(&layout, &proto, pc_of(1), 1, &found));
	assert_string_equal(found, "(for limit)");
	assert_false(lua_local_name(&layout, &proto, pc_of(2), 1, &found));
	assert_false(lua_local_name(&layout, &proto, pc_of(4), 0, &found));
}

static void a_call_of_a_variable_has_its_name(void **state)
{
	(void)state;
	put_variables();
	CHECK_CALL("a", { BC_GGET, 0, 0, 0 }, { BC_CALL, 0, 1, 1 });
	CHECK_CALL("a", { BC_MOV, 2, 0, 0 }, { BC_CALL, 2, 1, 1 });
}

static void instructions_have_lines(void **state)
{
	const struct bytecode code[] = { { .op = BC_FUNCF }, { .op = BC_GGET }, { .op = BC_GGET } };

	(void)state;
	make(code, 3);
	proto.firstline = FIRST_LINE;
	proto.numline = 255;
	assert_int_equal(lua_line(&layout, &proto, pc_of(1)), 0);
	put_field(layout.GCproto_lineinfo, PROTO + LINES, 8);
	put_field(LINES, 0x0201, 2);
	assert_int_equal(lua_line(&layout, &proto, pc_of(0)), FIRST_LINE);
	assert_int_equal(lua_line(&layout, &proto, pc_of(1)), FIRST_LINE + 1);
	assert_int_equal(lua_line(&layout, &proto, pc_of(2)), FIRST_LINE + 2);
	assert_int_equal(lua_line(&layout, &proto, pc_of(3)), 0);
	/* The table of a longer function has wider numbers. */
	proto.numline = 256;
	assert_int_equal(lua_line(&layout, &proto, pc_of(1)), FIRST_LINE + 0x0201);
	proto.numline = 65536;
	put_field(LINES, 0x30201, 4);
	assert_int_equal(lua_line(&layout, &proto, pc_of(1)), FIRST_LINE + 0x30201);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_call_is_named_by_what_loaded_the_function),
		TEST(what_was_moved_has_the_name_of_its_origin),
		TEST(what_has_no_origin_has_no_name),
		TEST(an_iterator_lies_three_slots_below),
		TEST(a_metamethod_has_the_name_of_its_event),
		TEST(upvalues_have_names),
		TEST(variables_have_a_scope),
		TEST(a_call_of_a_variable_has_its_name),
		TEST(instructions_have_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
