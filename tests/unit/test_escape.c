/* SPDX-License-Identifier: MIT */
/* Names as the user reads them: labels of frames, and their escaping. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/labels/escape.h"
#include "output/labels/frame_label.h"

static void assert_label(const struct function *function, uint32_t line, const char *function_view,
			 const char *line_view)
{
	char label[FRAME_LABEL_SIZE];

	assert_int_equal(frame_label(function, 0, false, label), strlen(function_view));
	assert_string_equal(label, function_view);
	assert_int_equal(frame_label(function, line, true, label), strlen(line_view));
	assert_string_equal(label, line_view);
}

static void a_lua_function_has_its_name_and_position(void **state)
{
	const struct function heavy = {
		.kind = FRAME_LUA, .name = "heavy", .file = "test.lua", .firstline = 5
	};
	const struct function unnamed = { .kind = FRAME_LUA, .file = "@test.lua", .firstline = 5 };
	const struct function chunk = { .kind = FRAME_LUA, .name = "main chunk", .file = "test.lua" };
	const struct function content = { .kind = FRAME_LUA,
					  .name = "main chunk",
					  .file = "=content_by_lua(nginx.conf:24)" };
	const struct function bare = { .kind = FRAME_LUA };

	(void)state;
	assert_label(&heavy, 8, "heavy test.lua:5", "heavy test.lua:8");
	assert_label(&heavy, 0, "heavy test.lua:5", "heavy test.lua:?");
	assert_label(&unnamed, 8, "function <test.lua:5>", "function <test.lua:5> test.lua:8");
	assert_label(&chunk, 31, "main chunk test.lua", "main chunk test.lua:31");
	assert_label(&content, 2, "main chunk content_by_lua(nginx.conf:24)",
		     "main chunk content_by_lua(nginx.conf:24):2");
	assert_label(&bare, 3, "function <?>", "function <?>");
}

static void other_frames_say_where_they_belong(void **state)
{
	const struct function gsub = { .kind = FRAME_BUILTIN, .name = "string.gsub" };
	const struct function root = { .kind = FRAME_C_FUNCTION, .name = "sqrt", .module = "libm.so.6" };
	const struct function known = {
		.kind = FRAME_NATIVE, .name = "sqrt", .file = "s_sqrt.c", .module = "libm.so.6"
	};
	const struct function nameless = { .kind = FRAME_NATIVE, .module = "libm.so.6" };
	const struct function handler = { .kind = FRAME_VM, .name = "lj_BC_ADDVV" };
	const struct function work = { .kind = FRAME_VM_WORK, .name = "growing a table" };
	const struct function own = { .kind = FRAME_VM };
	const struct function trace = {
		.kind = FRAME_TRACE, .name = "trace#2", .file = "test.lua", .firstline = 8
	};
	const struct function lost = { .kind = FRAME_LOST, .name = "frame chain broken" };

	(void)state;
	assert_label(&gsub, 3, "string.gsub [builtin]", "string.gsub [builtin]");
	assert_label(&root, 3, "sqrt [libm.so.6]", "sqrt [libm.so.6]");
	assert_label(&known, 31, "sqrt [libm.so.6]", "sqrt s_sqrt.c:31");
	assert_label(&known, 0, "sqrt [libm.so.6]", "sqrt [libm.so.6]");
	assert_label(&nameless, 0, "? [libm.so.6]", "? [libm.so.6]");
	assert_label(&handler, 0, "lj_BC_ADDVV [vm]", "lj_BC_ADDVV [vm]");
	assert_label(&work, 0, "[vm: growing a table]", "[vm: growing a table]");
	assert_label(&own, 0, "[vm]", "[vm]");
	assert_label(&trace, 9, "trace#2 test.lua:8 [jit]", "trace#2 test.lua:8 [jit]");
	assert_label(&lost, 0, "[lost: frame chain broken]", "[lost: frame chain broken]");
}

static char *repeated(const char *unit, size_t times)
{
	size_t length = strlen(unit);
	char *text = malloc(length * times + 1);

	assert_non_null(text);
	for (size_t i = 0; i < times; i++)
		memcpy(text + i * length, unit, length);
	text[length * times] = '\0';
	return text;
}

static void long_names_keep_their_head_and_long_paths_their_tail(void **state)
{
	char *name = repeated("\u00e4", 500000);
	char *file = repeated("\u20ac/", 250000);
	const struct function function = {
		.kind = FRAME_LUA, .name = name, .file = file, .firstline = 4294967295
	};
	const struct function unnamed = { .kind = FRAME_LUA, .file = file, .firstline = 4294967295 };
	char label[FRAME_LABEL_SIZE];
	char plain[8 * FRAME_LABEL_SIZE];

	(void)state;
	assert_in_range(frame_label(&function, 0, false, label), 700, FRAME_LABEL_SIZE - 1);
	assert_non_null(strstr(label, "\u00e4\u00e4\u2026 \u2026"));
	assert_non_null(strstr(label, "\u20ac/:4294967295"));
	escape_text(ESCAPE_PLAIN, label, plain, sizeof(plain));
	assert_string_equal(plain, label); /* cut between characters */

	assert_in_range(frame_label(&unnamed, 4294967295, true, label), 700, FRAME_LABEL_SIZE - 1);
	assert_non_null(strstr(label, "/:4294967295> \u2026"));
	assert_string_equal(strrchr(label, ':'), ":4294967295");
	free(name);
	free(file);
}

/* The longest name and file that are shown whole, and one byte more. */
static void names_and_files_have_a_longest_length(void **state)
{
	enum { LONGEST = 400, LONGEST_MODULE = 120 };
	char label[FRAME_LABEL_SIZE], expected[FRAME_LABEL_SIZE];
	char *name = repeated("n", LONGEST + 1), *file = repeated("f", LONGEST + 1);
	struct function function = { .kind = FRAME_LUA, .name = name, .file = file, .firstline = 7 };

	(void)state;
	frame_label(&function, 0, false, label);
	snprintf(expected, sizeof(expected), "%.*s\u2026 \u2026%.*s:7", LONGEST, name, LONGEST, file);
	assert_string_equal(label, expected);
	name[LONGEST] = file[LONGEST] = '\0';
	frame_label(&function, 0, false, label);
	snprintf(expected, sizeof(expected), "%s %s:7", name, file);
	assert_string_equal(label, expected);
	function = (struct function){ .kind = FRAME_NATIVE, .name = "x", .module = name };
	frame_label(&function, 0, false, label);
	snprintf(expected, sizeof(expected), "x [%.*s\u2026]", LONGEST_MODULE, name);
	assert_string_equal(label, expected);
	name[LONGEST_MODULE] = '\0';
	frame_label(&function, 0, false, label);
	snprintf(expected, sizeof(expected), "x [%s]", name);
	assert_string_equal(label, expected);
	free(name);
	free(file);
}

/* One byte more than there is room for, and the last character gives way. */
static void names_lose_whole_characters(void **state)
{
	static const char *const characters[] = { "z", "\u00e9", "\u20ac", "\U0001f600" };
	enum { LONGEST = 400 };

	(void)state;
	for (size_t i = 0; i < sizeof(characters) / sizeof(characters[0]); i++) {
		const int width = (int)strlen(characters[i]);
		char *name = repeated("n", LONGEST + 1);
		const struct function function = { .kind = FRAME_NATIVE, .name = name };
		char label[FRAME_LABEL_SIZE], expected[FRAME_LABEL_SIZE];

		memcpy(name + LONGEST - width, characters[i], (size_t)width);
		name[LONGEST] = '\0';
		frame_label(&function, 0, false, label);
		assert_string_equal(label, name);
		memcpy(name + LONGEST - width, "n", 1);
		memcpy(name + LONGEST - width + 1, characters[i], (size_t)width);
		frame_label(&function, 0, false, label);
		snprintf(expected, sizeof(expected), "%.*s\u2026", LONGEST - width + 1, name);
		assert_string_equal(label, expected);
		free(name);
	}
}

/* A character has four bytes at most: what has more of them in a row is none. */
static void names_that_are_not_utf8_are_cut_at_any_byte(void **state)
{
	char *name = repeated("\x80", 500), *file = repeated("\x80", 500);
	const struct function function = { .kind = FRAME_LUA, .name = name, .file = file };
	char label[FRAME_LABEL_SIZE];

	(void)state;
	frame_label(&function, 0, false, label);
	assert_in_range(strspn(label, "\x80"), 400 - 4, 400);
	assert_int_equal(strspn(strrchr(label, '\xa6') + 1, "\x80"), 400 - 3);
	free(name);
	free(file);
}

static void names_end_before_their_place(void **state)
{
	static const struct {
		struct function function;
		size_t length;
	} known[] = {
		{ { .kind = FRAME_LUA, .name = "heavy", .file = "test.lua" }, 5 },
		{ { .kind = FRAME_LUA, .name = "heavy" }, 5 },
		{ { .kind = FRAME_LUA, .file = "test.lua", .firstline = 5 }, 21 },
		{ { .kind = FRAME_BUILTIN, .name = "print" }, 5 },
		{ { .kind = FRAME_NATIVE, .name = "sqrt", .module = "libm.so.6" }, 4 },
		{ { .kind = FRAME_NATIVE, .name = "sqrt" }, 4 },
		{ { .kind = FRAME_VM, .name = "lj_BC_ADDVV" }, 11 },
		{ { .kind = FRAME_VM }, 4 },
		{ { .kind = FRAME_TRACE, .name = "trace#2", .file = "test.lua" }, 7 },
		{ { .kind = FRAME_TRACE, .name = "trace#2" }, 7 },
		{ { .kind = FRAME_LOST, .name = "reason" }, 14 },
		{ { .kind = FRAME_ALLOCATED, .name = "table" }, 14 },
		{ { .kind = FRAME_VM_WORK, .name = "work" }, 10 },
	};
	char label[FRAME_LABEL_SIZE];
	size_t length;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		frame_label_parts(&known[i].function, 0, false, label, &length);
		assert_int_equal(length, known[i].length);
		assert_true(label[length] == '\0' || label[length] == ' ');
	}
}

static void assert_escaped(enum escape_style style, const char *text, const char *expected)
{
	char buffer[512];

	assert_int_equal(escape_text(style, text, buffer, sizeof(buffer)), strlen(expected));
	assert_string_equal(buffer, expected);
}

static void harmless_text_stays_as_it_is(void **state)
{
	const char *text = "Grüße, 中文 \U0001f4a9 a\\b c:d";

	(void)state;
	assert_escaped(ESCAPE_PLAIN, text, text);
	assert_escaped(ESCAPE_XML, text, text);
	assert_escaped(ESCAPE_FOLDED, text, text);
	assert_escaped(ESCAPE_PLAIN, "", "");
}

static void what_cannot_be_seen_is_spelled_out(void **state)
{
	(void)state;
	assert_escaped(ESCAPE_PLAIN, "a\nb\tc\rd\x1b[31m\x7f", "a\\nb\\tc\\rd\\x1b[31m\\x7f");
	assert_escaped(ESCAPE_PLAIN,
		       "\xc2\x9b"
		       "31m",
		       "\\u009b31m"); /* the one-character form of ESC [ */
	assert_escaped(ESCAPE_PLAIN, "a\u202eb\u2066c\u200fd", "a\\u202eb\\u2066c\\u200fd");
	assert_escaped(ESCAPE_XML, "\uffff\ufeff\U000e0041", "\\uffff\\ufeff\\u{e0041}");
	assert_escaped(ESCAPE_PLAIN, "\u2028\u2029", "\\u2028\\u2029");
}

static void bytes_that_are_not_utf8_are_spelled_out(void **state)
{
	(void)state;
	assert_escaped(ESCAPE_PLAIN,
		       "a\xff"
		       "b",
		       "a\\xffb");
	assert_escaped(ESCAPE_PLAIN, "\x80", "\\x80");
	assert_escaped(ESCAPE_PLAIN, "\xc1\xbf", "\\xc1\\xbf");
	assert_escaped(ESCAPE_PLAIN, "\xe0\x9f\xbf", "\\xe0\\x9f\\xbf");
	assert_escaped(ESCAPE_PLAIN, "\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf");
	assert_escaped(ESCAPE_PLAIN, "\xed\xbf\xbf", "\\xed\\xbf\\xbf");
	assert_escaped(ESCAPE_PLAIN, "\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80");
	/* Four bytes begin with f7 at most, whatever code the others have. */
	assert_escaped(ESCAPE_PLAIN, "\xf8\x90\x80\x80", "\\xf8\\x90\\x80\\x80");
	assert_escaped(ESCAPE_PLAIN, "\xc0\xaf", "\\xc0\\xaf");                   /* overlong */
	assert_escaped(ESCAPE_PLAIN, "\xed\xa0\x80", "\\xed\\xa0\\x80");          /* surrogate */
	assert_escaped(ESCAPE_PLAIN, "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* beyond Unicode */
	assert_escaped(ESCAPE_PLAIN, "\xe2\x82", "\\xe2\\x82");                   /* cut off by the end */
	assert_escaped(ESCAPE_PLAIN, "\xe2\x82x", "\\xe2\\x82x");
}

/* A code point of Unicode as UTF-8. */
static void encode(uint32_t code, char ret_text[static 5])
{
	const size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned char leads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	memset(ret_text, 0, 5);
	for (size_t i = length; i-- > 1; code >>= 6)
		ret_text[i] = (char)(0x80 | (code & 0x3f));
	ret_text[0] = (char)(leads[length] | code);
}

/* Of each range the first and the last character, and those beside it. */
static void what_misleads_ends_where_unicode_says(void **state)
{
	static const uint32_t shown[] = { 0x20,   0x7e,    0xa0,    0x7ff,   0x800,   0x61b,   0x61d,
					  0x200a, 0x200c,  0x200d,  0x2010,  0x2027,  0x202f,  0x2065,
					  0x206a, 0xd7ff,  0xe000,  0xfdcf,  0xfdf0,  0xfefe,  0xff00,
					  0xfffd, 0x10000, 0x1fffd, 0xdfffd, 0xe0080, 0x10fffd };
	static const uint32_t spelled[] = { 0x80,   0x9f,    0x61c,   0x200b,  0x200e,  0x200f,   0x2028,
					    0x202e, 0x2066,  0x2069,  0xfdd0,  0xfdef,  0xfeff,   0xfffe,
					    0xffff, 0x1fffe, 0x1ffff, 0xe0000, 0xe007f, 0x10fffe, 0x10ffff };
	char text[5], expected[16];

	(void)state;
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		encode(shown[i], text);
		assert_escaped(ESCAPE_PLAIN, text, text);
	}
	for (size_t i = 0; i < sizeof(spelled) / sizeof(spelled[0]); i++) {
		encode(spelled[i], text);
		snprintf(expected, sizeof(expected), spelled[i] > 0xffff ? "\\u{%x}" : "\\u%04x", spelled[i]);
		assert_escaped(ESCAPE_PLAIN, text, expected);
	}
	assert_escaped(ESCAPE_PLAIN, "\x01\x1f\x7f", "\\x01\\x1f\\x7f");
}

static void each_style_escapes_what_its_format_reserves(void **state)
{
	(void)state;
	assert_escaped(ESCAPE_XML, "<a b=\"c\" d='e'>&]]>",
		       "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;]]&gt;");
	assert_escaped(ESCAPE_FOLDED, "a;b\n<c>", "a:b\\n<c>");
	assert_escaped(ESCAPE_PLAIN, "a;b<c>&", "a;b<c>&");
}

static void what_does_not_fit_is_cut_between_pieces(void **state)
{
	char buffer[16];

	(void)state;
	assert_int_equal(escape_text(ESCAPE_PLAIN, "123456789012345", buffer, sizeof(buffer)), 15);
	assert_string_equal(buffer, "123456789012345");
	assert_int_equal(escape_text(ESCAPE_PLAIN, "1234567890123456", buffer, sizeof(buffer)), 15);
	assert_string_equal(buffer, "123456789012\u2026");
	assert_int_equal(escape_text(ESCAPE_XML, "1234567890&&", buffer, sizeof(buffer)), 13);
	assert_string_equal(buffer, "1234567890\u2026");
	assert_int_equal(escape_text(ESCAPE_PLAIN, "1234567890\u20ac\u20ac", buffer, sizeof(buffer)), 13);
	assert_string_equal(buffer, "1234567890\u2026");
}

static void a_stream_gets_the_same_text_uncut(void **state)
{
	char *long_text = repeated("<\xff>", 5000);
	char *expected = repeated("&lt;\\xff&gt;", 5000);
	char *written = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&written, &size);

	(void)state;
	assert_non_null(out);
	escape_write(ESCAPE_XML, long_text, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(written, expected);
	free(written);
	free(expected);
	free(long_text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lua_function_has_its_name_and_position),
		cmocka_unit_test(other_frames_say_where_they_belong),
		cmocka_unit_test(long_names_keep_their_head_and_long_paths_their_tail),
		cmocka_unit_test(names_and_files_have_a_longest_length),
		cmocka_unit_test(names_lose_whole_characters),
		cmocka_unit_test(names_that_are_not_utf8_are_cut_at_any_byte),
		cmocka_unit_test(names_end_before_their_place),
		cmocka_unit_test(harmless_text_stays_as_it_is),
		cmocka_unit_test(what_cannot_be_seen_is_spelled_out),
		cmocka_unit_test(bytes_that_are_not_utf8_are_spelled_out),
		cmocka_unit_test(what_misleads_ends_where_unicode_says),
		cmocka_unit_test(each_style_escapes_what_its_format_reserves),
		cmocka_unit_test(what_does_not_fit_is_cut_between_pieces),
		cmocka_unit_test(a_stream_gets_the_same_text_uncut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
