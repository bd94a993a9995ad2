/* SPDX-License-Identifier: MIT */
/* Strings, numbers, cdata, functions and places, as LuaJIT's own listings write them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/listing/listing_source.h"
#include "unwind/lua/luajit.h"

enum { STRING = MADE_UP_AT + 0x100, CDATA = MADE_UP_AT + 0x800, FUNCTION = 0x5000, INT64 = 11, UINT64 = 12 };

static struct layout layout;
static struct builtins builtins;
static struct listing_source source;
static struct function_object object;
static bool is_known;

INSTEAD_OF(lua_objects_function);
const struct function_object *__wrap_lua_objects_function(const struct lua_objects *objects, uint64_t address)
{
	(void)objects;
	assert_int_equal(address, FUNCTION);
	return is_known ? &object : NULL;
}

static int begin(void **state)
{
	(void)state;
	layout = (struct layout){ .gc64 = true, .GChead_gct = 9, .GCstr_len = 20, .GCstr_size = 24 };
	source = (struct listing_source){ .memory = made_up_memory_begin(),
					  .layout = &layout,
					  .builtins = &builtins };
	object = (struct function_object){ .ffid = FF_LUA };
	is_known = true;
	return 0;
}

/*---- What is written ----*/

static struct listing_text written;

static FILE *out(void)
{
	assert_true(listing_text_begin(&written));
	return written.out;
}

static void assert_written(const char *wanted)
{
	char *text = listing_text_end(&written);

	assert_non_null(text);
	assert_string_equal(text, wanted);
	free(text);
}

static void put_string(const char *text, uint32_t length)
{
	put(STRING + (uint64_t)layout.GChead_gct, GCT_STRING, 1);
	put(STRING + (uint64_t)layout.GCstr_len, length, 4);
	put_bytes(STRING + (uint64_t)layout.GCstr_size, text, length);
}

static void assert_string(const char *text, unsigned int cut, const char *wanted)
{
	put_string(text, (uint32_t)strlen(text));
	assert_true(listing_write_string(&source, STRING, cut, out()));
	assert_written(wanted);
}

static void strings_are_cut_as_they_are_written(void **state)
{
	(void)state;
	assert_string("plain \"x\" \\", 40, "\"plain \"x\" \\\"");
	assert_string("\n\r\t\1\x7f\x80", 40, "\"\\n\\r\\t\\001\\127\x80\"");
	assert_string("12345", 5, "\"12345\"");
	assert_string("123456", 5, "\"12345\"~");
	assert_string("123\n56", 5, "\"123\\n\"~");
	assert_string("1234\n6", 5, "\"1234\\\"~");
	assert_string("\1\1\1\1\1\1", 6, "\"\\001\\001\\001\\001\\001\\001\"");
	assert_string("\1\1\1\1\1\1\1", 6, "\"\\001\\0\"~");
	assert_string("", 5, "\"\"");
	put_string("a\0b", 3);
	assert_true(listing_write_string(&source, STRING, 5, out()));
	assert_written("\"a\\000b\"");
}

static void what_is_no_string_is_not_written(void **state)
{
	const uint64_t last = MADE_UP_AT + MADE_UP_BYTES;

	(void)state;
	put_string("text", 4);
	assert_true(listing_is_string(&source, STRING, "text"));
	assert_false(listing_is_string(&source, STRING, "test"));
	assert_false(listing_is_string(&source, STRING, "tex"));
	assert_false(listing_is_string(&source, STRING, "text2"));
	put(STRING + 9, GCT_STRING + 1, 1);
	assert_false(listing_is_string(&source, STRING, "text"));
	assert_false(listing_write_string(&source, STRING, 5, out()));
	assert_written("");
	assert_false(listing_write_string(&source, last, 5, out()));
	assert_written("");
	/* Its header is there, and not all of its text. */
	put(last - 28 + 9, GCT_STRING, 1);
	put(last - 28 + 20, 5, 4);
	put_bytes(last - 4, "abcd", 4);
	assert_false(listing_write_string(&source, last - 28, 5, out()));
	assert_written("");
	assert_true(listing_write_string(&source, last - 28, 4, out()));
	assert_written("\"abcd\"~");
	assert_false(listing_is_string(&source, last - 28, "abcde"));
	/* A layout that cannot be right. */
	put(STRING + 9, GCT_STRING, 1);
	layout.GCstr_size = 33;
	assert_false(listing_is_string(&source, STRING, "text"));
	layout.GCstr_size = 23;
	assert_false(listing_write_string(&source, STRING, 5, out()));
	assert_written("");
}

/*---- Copies ----*/

static bool is_copied(struct snapshot *snapshot, uint64_t string, size_t length)
{
	return snapshot_view(snapshot, string + (uint64_t)layout.GCstr_size, length) != NULL;
}

/* Many at once are copied in parts; those of no string are passed over. */
static void all_of_many_strings_are_copied_as_far_as_they_are_shown(void **state)
{
	enum { MANY = 520, BYTES = 28, PART = 256 };
	static const size_t counts[] = { 0, 1, PART, PART + 1, MANY };
	struct snapshot *snapshot = snapshot_new(&made_up_memory.memory);
	uint64_t strings[MANY];

	(void)state;
	assert_non_null(snapshot);
	for (size_t i = 0; i < MANY; i++) {
		strings[i] = i % 7 == 6 ? MADE_UP_AT + MADE_UP_BYTES : STRING + i * BYTES;
		put(STRING + i * BYTES + (uint64_t)layout.GChead_gct, i % 5 == 4 ? GCT_TABLE : GCT_STRING, 1);
		put(STRING + i * BYTES + (uint64_t)layout.GCstr_len, 4, 4);
	}
	for (size_t round = 0; round < sizeof(counts) / sizeof(counts[0]); round++) {
		snapshot_clear(snapshot);
		listing_capture_strings(snapshot, &layout, strings, counts[round]);
		for (size_t i = 0; i < MANY; i++)
			if (i >= counts[round] || (i % 7 != 6 && i % 5 != 4))
				assert_int_equal(is_copied(snapshot, STRING + i * BYTES, 4),
						 i < counts[round]);
	}
	snapshot_free(snapshot);
}

static void of_a_long_string_its_beginning_is_copied(void **state)
{
	struct snapshot *snapshot = snapshot_new(&made_up_memory.memory);
	const uint64_t string = STRING;

	(void)state;
	assert_non_null(snapshot);
	put(STRING + (uint64_t)layout.GChead_gct, GCT_STRING, 1);
	put(STRING + (uint64_t)layout.GCstr_len, LISTING_NAME_MAX + 1, 4);
	listing_capture_strings(snapshot, &layout, &string, 1);
	assert_true(is_copied(snapshot, STRING, LISTING_NAME_MAX));
	assert_false(is_copied(snapshot, STRING, LISTING_NAME_MAX + 1));
	/* Of a layout that cannot be right, nothing is. */
	snapshot_clear(snapshot);
	layout.GCstr_size = 33;
	listing_capture_strings(snapshot, &layout, &string, 1);
	assert_false(is_copied(snapshot, STRING, 1));
	snapshot_free(snapshot);
}

/*---- Cdata ----*/

static void assert_cdata(uint64_t type, uint64_t value, const char *wanted)
{
	put(CDATA + (uint64_t)layout.GChead_gct, GCT_CDATA, 1);
	put(CDATA + (uint64_t)layout.GChead_gct + 1, type, 2);
	put(CDATA + (layout.gc64 ? 16 : 8), value, 8);
	listing_write_cdata(&source, CDATA, out());
	assert_written(wanted);
}

static void of_cdata_64_bit_numbers_are_shown(void **state)
{
	(void)state;
	assert_cdata(INT64, (uint64_t)-3, "-3LL");
	assert_cdata(UINT64, (uint64_t)-3, "18446744073709551613ULL");
	assert_cdata(UINT64 + 1, 3, "cdata: 0x00010800");
	assert_cdata(INT64 - 1, 3, "cdata: 0x00010800");
	assert_cdata(INT64 | 0x100, 3, "cdata: 0x00010800"); /* the number of a type has two bytes */
	put(CDATA + 9, GCT_CDATA + 1, 1);
	put(CDATA + 10, INT64, 2);
	listing_write_cdata(&source, CDATA, out());
	assert_written("cdata: 0x00010800");
	listing_write_cdata(&source, MADE_UP_AT + MADE_UP_BYTES, out());
	assert_written("cdata: 0x00014000");
	layout.gc64 = false;
	layout.GChead_gct = 5;
	assert_cdata(INT64, 44, "44LL");
}

/*---- Functions ----*/

static void functions_are_named_by_their_place_or_number(void **state)
{
	struct proto proto = { .chunkname = (char[]){ "@dir/file.lua" }, .firstline = 12 };

	(void)state;
	listing_write_function(&source, FUNCTION, out());
	assert_written("(?)"); /* its prototype was not copied */
	is_known = false;
	listing_write_function(&source, FUNCTION, out());
	assert_written("(?)");
	is_known = true;
	object.proto = &proto;
	listing_write_function(&source, FUNCTION, out());
	assert_written("file.lua:12");
	object = (struct function_object){ .ffid = FF_C, .f = 0xabc };
	listing_write_function(&source, FUNCTION, out());
	assert_written("C:abc");
	object.ffid = 20;
	listing_write_function(&source, FUNCTION, out());
	assert_written("builtin #20");
	strcpy(builtins.at[20].name, "math.abs");
	listing_write_function(&source, FUNCTION, out());
	assert_written("math.abs");
}

static void assert_place(const char *chunkname, uint32_t firstline, const char *wanted)
{
	struct proto proto = { .address = 0x1234,
			       .chunkname = (char *)(uintptr_t)chunkname,
			       .firstline = firstline };
	char place[LISTING_PLACE_SIZE];

	listing_place(&proto, 7, place);
	assert_string_equal(place, wanted);
}

static void a_place_is_a_file_without_its_folders(void **state)
{
	(void)state;
	assert_place("@a.lua", 1, "a.lua:7");
	assert_place("@/srv/app/a.lua", 1, "a.lua:7");
	assert_place("@C:\\app\\a.lua", 1, "a.lua:7");
	assert_place("=stdin", 1, "stdin:7");
	assert_place("return 1", 1, "\"return 1\":7");
	assert_place("1234567890123456789012345678901234567890", 1,
		     "\"1234567890123456789012345678901234567890\":7");
	assert_place("12345678901234567890123456789012345678901", 1, "0x00001234:7");
	assert_place("=2345678901234567890123456789012345678901", 1, "0x00001234:7");
	assert_place("@2345678901234567890123456789012345678901", 1,
		     "2345678901234567890123456789012345678901:7");
	assert_place("table.foreach", FIRSTLINE_BUILTIN, "builtin:table.foreach");
	assert_place(NULL, 1, "\"?\":7");
}

/*---- Numbers ----*/

static void assert_number(double number, bool with_sign, const char *wanted)
{
	listing_write_number(number, with_sign, out());
	assert_written(wanted);
}

static void numbers_have_fourteen_digits(void **state)
{
	(void)state;
	assert_number(1, true, "+1");
	assert_number(1, false, "1");
	assert_number(-0.1, true, "-0.1");
	assert_number(1.0 / 3, false, "0.33333333333333");
	assert_number((double)NAN, true, "+nan");
	assert_number((double)NAN, false, "nan");
	assert_number(HUGE_VAL, true, "+inf");
	assert_number(-HUGE_VAL, false, "-inf");
	/* The smallest ones are written by their bits. */
	assert_number(0x1p-1027, true, "+0x1p-1027");
	assert_number(0x1.8p-1030, true, "+0x1.8p-1030");
	assert_number(0x1p-1026, true, "+1.390671161567e-309");
	assert_number(0, true, "+0");
	assert_number(0x1p-1027, false, "6.953355807835e-310");
}

static void addresses_have_as_many_digits_as_they_need(void **state)
{
	static const struct {
		uint64_t address;
		const char *wanted;
	} cases[] = { { 0, "NULL" },
		      { 1, "0x00000001" },
		      { 0xffffffff, "0xffffffff" },
		      { 0x100000000, "0x0100000000" },
		      { 0x8000000000, "0x8000000000" },
		      { 0x10000000000, "0x010000000000" },
		      { 0x7f1234567890, "0x7f1234567890" },
		      { UINT64_MAX, "0xffffffffffffffff" } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		listing_write_pointer(cases[i].address, out());
		assert_written(cases[i].wanted);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(strings_are_cut_as_they_are_written),
		TEST(what_is_no_string_is_not_written),
		TEST(all_of_many_strings_are_copied_as_far_as_they_are_shown),
		TEST(of_a_long_string_its_beginning_is_copied),
		TEST(of_cdata_64_bit_numbers_are_shown),
		TEST(functions_are_named_by_their_place_or_number),
		TEST(a_place_is_a_file_without_its_folders),
		TEST(numbers_have_fourteen_digits),
		TEST(addresses_have_as_many_digits_as_they_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
