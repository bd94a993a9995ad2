/* SPDX-License-Identifier: MIT */
/* Lines of source files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/source/source_data.h"
#include "output/source/source_text.h"

static int split(const char *text, size_t length, struct source_text *ret_text)
{
	char *bytes = malloc(length + 1);

	assert_non_null(bytes);
	memcpy(bytes, text, length);
	bytes[length] = '\0';
	return source_text_split(bytes, length, ret_text);
}

static void test_lines_end_in_any_way(void **state)
{
	static const char *const texts[] = { "a\n\tb\n\nc\n", "a\n\tb\n\nc", "a\r\n\tb\r\n\r\nc\r\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct source_text text;

		assert_int_equal(split(texts[i], strlen(texts[i]), &text), 0);
		assert_int_equal(text.line_count, 4);
		assert_string_equal(text.lines[0], "a");
		assert_string_equal(text.lines[1], "\tb");
		assert_string_equal(text.lines[2], "");
		assert_string_equal(text.lines[3], "c");
		source_text_clear(&text);
	}
}

static void test_empty_file_has_no_lines(void **state)
{
	struct source_text text;

	(void)state;
	assert_int_equal(split("", 0, &text), 0);
	assert_int_equal(text.line_count, 0);
	source_text_clear(&text);
}

static void test_what_is_no_text_is_refused(void **state)
{
	struct source_text text = { 0 };
	char *many = malloc(SOURCE_LINES_MAX + 2);

	(void)state;
	assert_int_equal(split("a\0b\n", 4, &text), -EILSEQ);
	assert_non_null(many);
	memset(many, '\n', SOURCE_LINES_MAX + 1);
	many[SOURCE_LINES_MAX + 1] = '\0';
	assert_int_equal(source_text_split(many, SOURCE_LINES_MAX + 1, &text), -EFBIG);
	assert_null(text.lines);
}

static void test_lines_are_written_as_character_data(void **state)
{
	char *written = NULL;
	size_t length;
	FILE *out = open_memstream(&written, &length);

	(void)state;
	assert_non_null(out);
	source_data_write_line(out, "\tif a<b then\t-- \x1b[31m & ]]> \xe2\x80\xae\xff\r");
	fclose(out);
	assert_string_equal(written, "\tif a&lt;b then\t-- \\x1b[31m &amp; ]]&gt; \\u202e\\xff\\r");
	free(written);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_end_in_any_way),
		cmocka_unit_test(test_empty_file_has_no_lines),
		cmocka_unit_test(test_what_is_no_text_is_refused),
		cmocka_unit_test(test_lines_are_written_as_character_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
