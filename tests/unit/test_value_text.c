/* SPDX-License-Identifier: MIT */
/* How values of Lua read, and C types, in a memory that the test writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "luajit-layouts/field.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/lua/luajit.h"
#include "unwind/lua/value_capture.h"
#include "unwind/values/value_text.h"

enum {
	STRING = MADE_UP_AT + 0x100,
	KEY = MADE_UP_AT + 0x300, /* and more of them, each KEY_SIZE further */
	KEY_SIZE = 0x40,
	TABLE = MADE_UP_AT + 0x800,
	ARRAY = MADE_UP_AT + 0x900,
	NODES = MADE_UP_AT + 0x1000,
	FUNCTION = MADE_UP_AT + 0x2000,
	PROTO = MADE_UP_AT + 0x2100,
	OTHER = MADE_UP_AT + 0x2800, /* cdata, userdata */
	G = MADE_UP_AT + 0x3000,
	CTYPE_STATE = MADE_UP_AT + 0x3100,
	CTYPES = MADE_UP_AT + 0x3200,
	CTYPE_SIZE = 24,
	DECLARED = 96, /* by the program */
	NODE_SIZE = 24,
	TAG_OF_CDATA = ~10,
	TAG_OF_NUMBER = ~13,
};

static const struct layout gc64 = {
	.gc64 = true,
	.GChead_gct = 9,
	.GCstr_len = 20,
	.GCstr_size = 24,
	.GCtab_array = 16,
	.GCtab_node = 24,
	.GCtab_asize = 32,
	.GCtab_hmask = 36,
	.GCtab_size = 40,
	.Node_val = 0,
	.Node_key = 8,
	.Node_size = NODE_SIZE,
	.GCfunc_ffid = 10,
	.GCfunc_pc = 32,
	.GCproto_chunkname = 40,
	.GCproto_firstline = 48,
	.GCproto_numline = 52,
	.GCproto_size = 64,
	.GCudata_len = 20,
	.g_ctype_state = 8,
};
static const struct layout gc32 = { .gc64 = false };

static bool name_function(void *context, uint64_t function, char ret_name[static VALUE_FUNCTION_SIZE])
{
	(void)context;
	assert_int_equal(function, FUNCTION);
	snprintf(ret_name, VALUE_FUNCTION_SIZE, "string.gsub [builtin]");
	return true;
}

static struct value_reader reader;

static int begin(void **state)
{
	(void)state;
	reader = (struct value_reader){
		.memory = made_up_memory_begin(),
		.live = &made_up_memory.memory,
		.layout = &gc64,
		.g = G,
		.name_function = name_function,
	};
	return 0;
}

static uint64_t tagged(int tag, uint64_t object)
{
	return (uint64_t)(int64_t)tag << 47 | object;
}

static uint64_t number(double number)
{
	uint64_t value;

	memcpy(&value, &number, sizeof(value));
	return value;
}

static void check(uint64_t value, const char *type, const char *wanted)
{
	char text[VALUE_TEXT_SIZE];
	const char *found = value_text(&reader, value, text);

	assert_string_equal(found ? found : "unknown", type);
	assert_string_equal(text, wanted);
}

static void check_unknown(uint64_t value)
{
	check(value, "unknown", "");
}

static uint64_t string_at(uint64_t address, const char *bytes, size_t length)
{
	put(address + (uint64_t)gc64.GChead_gct, GCT_STRING, 1);
	put(address + (uint64_t)gc64.GCstr_len, length, 4);
	put_bytes(address + (uint64_t)gc64.GCstr_size, bytes, length);
	return tagged(TAG_STR, address);
}

static uint64_t key(unsigned index, const char *text)
{
	return string_at(KEY + index * KEY_SIZE, text, strlen(text));
}

static void plain_values(void **state)
{
	(void)state;
	check(UINT64_MAX, "nil", "nil");
	check(tagged(~1, 0), "boolean", "false");
	check(tagged(~2, 0), "boolean", "true");
	check(tagged(~3, 0x1234), "userdata", "light userdata");
	check(tagged(TAG_OF_NUMBER, (uint32_t)-7), "number", "-7");
	check(number(0.1), "number", "0.1");
	check(number(0.1 + 0.2), "number", "0.30000000000000004");
	check(number(-2.5e300), "number", "-2.5e+300");
	check(UINT64_C(0xfff8000000000000), "number", "nan");
}

/* Without GC64 a tag has 32 bits, and light userdata has many. */
static void plain_values_of_32_bits(void **state)
{
	(void)state;
	reader.layout = &gc32;
	check(UINT64_C(0xffffffff00000000), "nil", "nil");
	check(UINT64_C(0xfffffffd00000000), "boolean", "true");
	check(UINT64_C(0xffff7fff12345678), "userdata", "light userdata");
	check(UINT64_C(0xffff000012345678), "userdata", "light userdata");
	check(UINT64_C(0xfffefffffffffff9), "number", "-7");
	check(number(-0.5), "number", "-0.5");
	check_unknown(UINT64_C(0xfffffffb00000008)); /* a string, of which nothing is copied */
}

static void strings_are_quoted_and_cut(void **state)
{
	char bytes[VALUE_STRING_SHOWN + 2], wanted[VALUE_TEXT_SIZE];

	(void)state;
	check(string_at(STRING, "a\"b\\c\0d\n", 8), "string", "\"a\\\"b\\\\c\\0d\n\"");
	check(string_at(STRING, "", 0), "string", "\"\"");
	memset(bytes, 'x', sizeof(bytes));
	snprintf(wanted, sizeof(wanted), "\"%.*s\"", VALUE_STRING_SHOWN, bytes);
	check(string_at(STRING, bytes, VALUE_STRING_SHOWN), "string", wanted);
	snprintf(wanted, sizeof(wanted), "\"%.*s\"... (%d bytes)", VALUE_STRING_SHOWN, bytes,
		 VALUE_STRING_SHOWN + 1);
	check(string_at(STRING, bytes, VALUE_STRING_SHOWN + 1), "string", wanted);
}

/* A part of a character is left out, and whole ones are not. */
static void strings_are_cut_between_characters(void **state)
{
	static const char *const characters[] = { "x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };
	char bytes[VALUE_STRING_SHOWN + 8], wanted[VALUE_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(characters) / sizeof(characters[0]); i++) {
		const size_t size = strlen(characters[i]);

		/* So many bytes of the character come before the cut. */
		for (size_t part = 1; part <= size; part++) {
			memset(bytes, 'x', sizeof(bytes));
			memcpy(bytes + VALUE_STRING_SHOWN - part, characters[i], size);
			snprintf(wanted, sizeof(wanted), "\"%.*s\"... (%zu bytes)",
				 (int)(VALUE_STRING_SHOWN - (part < size ? part : 0)), bytes, sizeof(bytes));
			check(string_at(STRING, bytes, sizeof(bytes)), "string", wanted);
		}
	}
	/* What is no UTF-8 is cut anywhere. */
	memset(bytes, '\xa9', sizeof(bytes));
	snprintf(wanted, sizeof(wanted), "\"%.*s\"... (%zu bytes)", VALUE_STRING_SHOWN, bytes, sizeof(bytes));
	check(string_at(STRING, bytes, sizeof(bytes)), "string", wanted);
}

static void what_is_no_such_object_is_unknown(void **state)
{
	(void)state;
	string_at(STRING, "text", 4);
	put(STRING + (uint64_t)gc64.GChead_gct, GCT_TABLE, 1);
	check_unknown(tagged(TAG_STR, STRING));
	check_unknown(tagged(TAG_STR, MADE_UP_AT + MADE_UP_BYTES));
	put(TABLE + (uint64_t)gc64.GChead_gct, GCT_STRING, 1);
	check_unknown(tagged(TAG_TAB, TABLE));
	check_unknown(tagged(TAG_FUNC, TABLE));
	check_unknown(tagged(TAG_UDATA, TABLE));
	check_unknown(tagged(TAG_THREAD, TABLE));
	check_unknown(tagged(TAG_OF_CDATA, TABLE));
	check_unknown(tagged(TAG_PROTO, TABLE));
}

/* A table of so many array slots and nodes; a power of two of the latter. All are nil. */
static uint64_t table(uint32_t slots, uint32_t nodes)
{
	put(TABLE + (uint64_t)gc64.GChead_gct, GCT_TABLE, 1);
	put(TABLE + (uint64_t)gc64.GCtab_array, ARRAY, 8);
	put(TABLE + (uint64_t)gc64.GCtab_asize, slots, 4);
	put(TABLE + (uint64_t)gc64.GCtab_node, NODES, 8);
	put(TABLE + (uint64_t)gc64.GCtab_hmask, nodes - 1, 4);
	for (uint32_t i = 0; i < slots && i < VALUE_TABLE_SLOTS; i++)
		put(ARRAY + i * SLOT_SIZE, UINT64_MAX, SLOT_SIZE);
	for (uint32_t i = 0; i < nodes; i++)
		put(NODES + i * NODE_SIZE, UINT64_MAX, SLOT_SIZE);
	return tagged(TAG_TAB, TABLE);
}

static void put_node(uint32_t index, uint64_t of, uint64_t value)
{
	put(NODES + index * NODE_SIZE, value, SLOT_SIZE);
	put(NODES + index * NODE_SIZE + (uint64_t)gc64.Node_key, of, SLOT_SIZE);
}

static void tables_show_their_first_entries(void **state)
{
	uint64_t value = table(3, 4);

	(void)state;
	check(value, "table", "table: 0x10800 (empty)");
	put(ARRAY + SLOT_SIZE, tagged(~2, 0), SLOT_SIZE);
	check(value, "table", "table: 0x10800 (1 entry) {[1] = true}");
	put_node(0, key(0, "name"), key(1, "x"));
	put_node(2, key(2, "not a name"), number(2));
	put_node(3, number(0.5), tagged(TAG_TAB, 0x12340));
	check(value, "table",
	      "table: 0x10800 (4 entries) {[1] = true, name = \"x\", [\"not a name\"] = 2, "
	      "[0.5] = table: 0x12340}");
	put(ARRAY + 0 * SLOT_SIZE, number(0), SLOT_SIZE);
	put(ARRAY + 2 * SLOT_SIZE, tagged(~1, 0), SLOT_SIZE);
	check(value, "table",
	      "table: 0x10800 (6 entries) {[0] = 0, [1] = true, [2] = false, name = \"x\", "
	      "[\"not a name\"] = 2, ...}");
}

static void entries_that_are_not_copied_are_not_guessed(void **state)
{
	uint64_t value = table(2, 1);

	(void)state;
	put(ARRAY, number(1), SLOT_SIZE);
	put(ARRAY + SLOT_SIZE, tagged(TAG_STR, MADE_UP_AT + MADE_UP_BYTES), SLOT_SIZE);
	check(value, "table", "table: 0x10800 (2 entries) {[0] = 1, ?}");
	/* More slots than are copied of one. */
	value = table(VALUE_TABLE_SLOTS + 1, 1);
	put(ARRAY, number(1), SLOT_SIZE);
	check(value, "table", "table: 0x10800 (1 or more entries) {[0] = 1, ...}");
	value = table(1, 1);
	put(TABLE + (uint64_t)gc64.GCtab_array, MADE_UP_AT + MADE_UP_BYTES, 8);
	check(value, "table", "table: 0x10800 (0 or more entries)");
}

static void check_function(const char *chunkname, uint32_t firstline, const char *wanted)
{
	string_at(STRING, chunkname, strlen(chunkname));
	put(PROTO + (uint64_t)gc64.GCproto_firstline, firstline, 4);
	put(PROTO + (uint64_t)gc64.GCproto_numline, 9, 4);
	check(tagged(TAG_FUNC, FUNCTION), "function", wanted);
}

/* A chunk's name that is so long; as much of it is copied as of any string. */
static void check_long_name(size_t length, bool is_whole)
{
	char name[VALUE_STRING_BYTES + 8] = "@", wanted[2 * VALUE_STRING_BYTES];
	const int kept = (int)(is_whole ? length : VALUE_STRING_BYTES) - 1;

	memset(name + 1, 'x', length - 1);
	snprintf(wanted, sizeof(wanted), "function: 0x12000 %.*s%s:12", kept, name + 1,
		 is_whole ? "" : "...");
	check_function(name, 12, wanted);
}

static void functions_say_where_they_are(void **state)
{
	(void)state;
	put(FUNCTION + (uint64_t)gc64.GChead_gct, GCT_FUNCTION, 1);
	put(FUNCTION + (uint64_t)gc64.GCfunc_ffid, FF_LUA, 1);
	put(FUNCTION + (uint64_t)gc64.GCfunc_pc, PROTO + (uint64_t)gc64.GCproto_size, 8);
	put(PROTO + (uint64_t)gc64.GCproto_chunkname, STRING, 8);
	check_function("@app.lua", 12, "function: 0x12000 app.lua:12");
	check_function("=console", 12, "function: 0x12000 console:12");
	check_function("@app.lua", 0, "function: 0x12000 main chunk app.lua");
	/* Stripped bytecode has no lines: it may be a main chunk, or not. */
	put(PROTO + (uint64_t)gc64.GCproto_numline, 0, 4);
	check(tagged(TAG_FUNC, FUNCTION), "function", "function: 0x12000 app.lua");
	check_long_name(VALUE_STRING_BYTES - 1, true);
	check_long_name(VALUE_STRING_BYTES, true);
	check_long_name(VALUE_STRING_BYTES + 1, false);
	check_function("@app.lua", 12, "function: 0x12000 app.lua:12");
	check_function("return 1", 3, "function: 0x12000 [string \"return 1\"]:3");
	check_function("table.foreach", FIRSTLINE_BUILTIN, "function: 0x12000 table.foreach [builtin]");
	put(FUNCTION + (uint64_t)gc64.GCfunc_ffid, 80, 1);
	check(tagged(TAG_FUNC, FUNCTION), "function", "function: 0x12000 string.gsub [builtin]");
	reader.name_function = NULL;
	check(tagged(TAG_FUNC, FUNCTION), "function", "function: 0x12000");
}

static void other_objects(void **state)
{
	(void)state;
	put(OTHER + (uint64_t)gc64.GChead_gct, GCT_USERDATA, 1);
	put(OTHER + (uint64_t)gc64.GCudata_len, 24, 4);
	check(tagged(TAG_UDATA, OTHER), "userdata", "userdata: 0x12800 (24 bytes)");
	put(OTHER + (uint64_t)gc64.GChead_gct, GCT_THREAD, 1);
	check(tagged(TAG_THREAD, OTHER), "thread", "thread: 0x12800");
}

/*---- C data ----*/

/* Of lj_ctype.h; a type's number is its place. */
enum { NUM = 0, STRUCT, PTR, ARRAY_OF, VOID, ENUM, FUNC, TYPEDEF };
enum {
	BOOL = 0x08000000,
	FP = 0x04000000,
	UNSIGNED = 0x00800000,
	UNION = UNSIGNED,
	REF = UNSIGNED,
	COMPLEX = FP,
	NO_SIZE = -1
};

static void put_ctype(unsigned id, unsigned kind, uint32_t flags_and_child, uint32_t size)
{
	put(CTYPES + id * CTYPE_SIZE, kind << 28 | flags_and_child, 4);
	put(CTYPES + id * CTYPE_SIZE + 4, size, 4);
}

static void put_types(uint32_t count)
{
	put(G + (uint64_t)gc64.g_ctype_state, CTYPE_STATE, 8);
	put(CTYPE_STATE, CTYPES, 8);
	put(CTYPE_STATE + 8, count, 4);
	put(CTYPE_STATE + 24, G, 8);
}

/* A cdata of type 1 that holds this. */
static void check_cdata(uint64_t holds, const char *wanted)
{
	put(OTHER + (uint64_t)gc64.GChead_gct, GCT_CDATA, 1);
	put(OTHER + (uint64_t)gc64.GChead_gct + 1, 1, 2);
	put(OTHER + 16, holds, 8);
	check(tagged(TAG_OF_CDATA, OTHER), "cdata", wanted);
}

static void numbers_in_cdata(void **state)
{
	const float half = 0.5F;
	uint32_t single;

	(void)state;
	put_types(DECLARED + 1);
	put_ctype(1, NUM, 0, 8);
	check_cdata(UINT64_MAX, "cdata<int64_t>: -1");
	put_ctype(1, NUM, UNSIGNED, 8);
	check_cdata(UINT64_MAX, "cdata<uint64_t>: 18446744073709551615");
	put_ctype(1, NUM, 0, 2);
	check_cdata(0x1234ffff, "cdata<int16_t>: -1");
	put_ctype(1, NUM, BOOL | UNSIGNED, 1);
	check_cdata(0x1201, "cdata<bool>: 1");
	put_ctype(1, NUM, FP, 8);
	check_cdata(number(1.5), "cdata<double>: 1.5");
	memcpy(&single, &half, sizeof(single));
	put_ctype(1, NUM, FP, 4);
	check_cdata(single, "cdata<float>: 0.5");
	put_ctype(1, TYPEDEF, DECLARED, 0);
	put_ctype(DECLARED, ENUM, 3, 4);
	check_cdata(7, "cdata<enum 96>: 7");
}

/* References of four bytes make a cdata's header, and a type, shorter. */
static void numbers_in_cdata_without_gc64(void **state)
{
	enum { SHORT_TYPE_SIZE = 16, COUNT = DECLARED + 1 };
	const struct layout short_layout = { .gc64 = false, .GChead_gct = 5, .g_ctype_state = 8 };

	(void)state;
	reader.layout = &short_layout;
	put(G + (uint64_t)short_layout.g_ctype_state, CTYPE_STATE, 4);
	put(CTYPE_STATE, CTYPES, 8);
	put(CTYPE_STATE + 8, COUNT, 4);
	put(CTYPE_STATE + 24, G, 8);
	put(CTYPES + SHORT_TYPE_SIZE, (uint32_t)NUM << 28, 4);
	put(CTYPES + SHORT_TYPE_SIZE + 4, 8, 4);
	put(OTHER + (uint64_t)short_layout.GChead_gct, GCT_CDATA, 1);
	put(OTHER + (uint64_t)short_layout.GChead_gct + 1, 1, 2);
	put(OTHER + 8, (uint64_t)-7, 8);
	put(OTHER + 16, 9, 8);
	check((uint64_t)(uint32_t)TAG_OF_CDATA << 32 | OTHER, "cdata", "cdata<int64_t>: -7");
}

/* Of LuaJIT's own types only that of what ffi.typeof() returns is an enum. */
static void a_type_shows_which_one_it_is(void **state)
{
	(void)state;
	put_types(8);
	put_ctype(1, ENUM, 3, 4);
	put_ctype(2, STRUCT, 0, 24);
	string_at(KEY, "conn", 4);
	put(CTYPES + 2 * CTYPE_SIZE + 16, KEY, 8);
	put_ctype(3, NUM, 0, 4);
	check_cdata(2, "ctype<struct conn>");
	check_cdata(3, "ctype<int32_t>");
	check_cdata(1, "ctype<ctype>");
	check_cdata(8, "ctype"); /* behind the last one */
}

static void types_are_written_as_in_c(void **state)
{
	(void)state;
	put_types(8);
	put_ctype(1, PTR, 2, 8);
	put_ctype(2, STRUCT, 0, 24);
	string_at(KEY, "conn", 4);
	put(CTYPES + 2 * CTYPE_SIZE + 16, KEY, 8);
	check_cdata(0xabc, "cdata<struct conn *>: 0xabc");
	put_ctype(1, PTR, REF | 2, 8);
	put_ctype(2, STRUCT, UNION, 24);
	check_cdata(0xabc, "cdata<union conn &>: 0xabc");
	put_ctype(1, STRUCT, 0, 24);
	check_cdata(0xabc, "cdata<struct 1>: 0x12800");
	put_ctype(1, ARRAY_OF, 3, 16);
	put_ctype(3, NUM, 0, 4);
	check_cdata(0, "cdata<int32_t[4]>: 0x12800");
	put_ctype(1, ARRAY_OF, 3, (uint32_t)NO_SIZE);
	check_cdata(0, "cdata<int32_t[?]>: 0x12800");
	put_ctype(1, ARRAY_OF, COMPLEX | 3, 16);
	put_ctype(3, NUM, FP, 8);
	check_cdata(0, "cdata<double complex>: 0x12800");
	put_ctype(1, PTR, 2, 8);
	put_ctype(2, ARRAY_OF, COMPLEX | 3, 16);
	check_cdata(0xabc, "cdata<double complex*>: 0xabc");
	put_ctype(1, PTR, 4, 8);
	put_ctype(4, FUNC, 5, 0);
	put_ctype(5, VOID, 0, 0);
	check_cdata(0xabc, "cdata<void (*)()>: 0xabc");
	put_ctype(4, ARRAY_OF, 3, 32);
	check_cdata(0xabc, "cdata<double (*)[4]>: 0xabc");
	put_ctype(1, ARRAY_OF, 4, 32);
	put_ctype(4, PTR, 3, 8);
	check_cdata(0, "cdata<double *[4]>: 0x12800");
}

static void types_that_make_no_sense_are_unknown(void **state)
{
	(void)state;
	put_types(3);
	put(OTHER + (uint64_t)gc64.GChead_gct, GCT_CDATA, 1);
	put(OTHER + (uint64_t)gc64.GChead_gct + 1, 1, 2);
	put_ctype(1, PTR, 2, 8); /* in a circle */
	put_ctype(2, TYPEDEF, 1, 0);
	check_unknown(tagged(TAG_OF_CDATA, OTHER));
	put_ctype(1, PTR, 3, 8); /* behind the last one */
	check_unknown(tagged(TAG_OF_CDATA, OTHER));
	put_ctype(1, NUM, 0, 8);
	check(tagged(TAG_OF_CDATA, OTHER), "cdata", "cdata<int64_t>: 0");
	put(CTYPE_STATE + 24, G + 8, 8); /* of another global_State */
	check_unknown(tagged(TAG_OF_CDATA, OTHER));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(plain_values, begin),
		cmocka_unit_test_setup(plain_values_of_32_bits, begin),
		cmocka_unit_test_setup(strings_are_quoted_and_cut, begin),
		cmocka_unit_test_setup(strings_are_cut_between_characters, begin),
		cmocka_unit_test_setup(what_is_no_such_object_is_unknown, begin),
		cmocka_unit_test_setup(tables_show_their_first_entries, begin),
		cmocka_unit_test_setup(entries_that_are_not_copied_are_not_guessed, begin),
		cmocka_unit_test_setup(functions_say_where_they_are, begin),
		cmocka_unit_test_setup(other_objects, begin),
		cmocka_unit_test_setup(numbers_in_cdata, begin),
		cmocka_unit_test_setup(numbers_in_cdata_without_gc64, begin),
		cmocka_unit_test_setup(a_type_shows_which_one_it_is, begin),
		cmocka_unit_test_setup(types_are_written_as_in_c, begin),
		cmocka_unit_test_setup(types_that_make_no_sense_are_unknown, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
