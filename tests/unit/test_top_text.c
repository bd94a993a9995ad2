/* SPDX-License-Identifier: MIT */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <wchar.h>

#include <cmocka.h>

#include "src/top/text.h"

static void check(const char *text, enum text_part part, size_t columns, const wchar_t *expected,
		  size_t expected_columns)
{
	wchar_t wide[TEXT_SIZE];
	size_t length, taken = text_fit(text, part, columns, wide, &length);

	assert_int_equal(wcscmp(wide, expected), 0);
	assert_int_equal(length, wcslen(expected));
	assert_int_equal(taken, expected_columns);
}

static void use_utf8(void)
{
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		skip();
}

static void what_fits_stays(void **state)
{
	(void)state;
	use_utf8();
	check("heavy", TEXT_HEAD, 5, L"heavy", 5);
	check("", TEXT_HEAD, 5, L"", 0);
	check("caf\u00e9", TEXT_TAIL, 4, L"caf\u00e9", 4);
}

static void the_end_or_the_beginning_is_cut(void **state)
{
	(void)state;
	use_utf8();
	check("heavy", TEXT_HEAD, 4, L"hea\u2026", 4);
	check("dir/test.lua:5", TEXT_TAIL, 7, L"\u2026.lua:5", 7);
	check("heavy", TEXT_HEAD, 1, L"\u2026", 1);
	check("heavy", TEXT_HEAD, 0, L"", 0);
}

/* Wide characters are not cut in two, and combining ones take no column. */
static void columns_are_not_characters(void **state)
{
	(void)state;
	use_utf8();
	check("\u6f22\u5b57", TEXT_HEAD, 4, L"\u6f22\u5b57", 4);
	check("\u6f22\u5b57", TEXT_HEAD, 3, L"\u6f22\u2026", 3);
	check("\u6f22\u5b57x", TEXT_HEAD, 3, L"\u6f22\u2026", 3);
	check("\u6f22\u5b57\u6f22", TEXT_HEAD, 4, L"\u6f22\u2026", 3);
	check("e\u0301e\u0301", TEXT_HEAD, 2, L"e\u0301e\u0301", 2);
}

static void nothing_reaches_the_terminal_unescaped(void **state)
{
	(void)state;
	use_utf8();
	check("a\x1b[31m\n\xff", TEXT_HEAD, 80, L"a\\x1b[31m\\n\\xff", 15);
}

static void what_the_locale_lacks_is_a_question_mark(void **state)
{
	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C"));
	check("caf\u00e9", TEXT_HEAD, 10, L"caf?", 4);
	check("heavy", TEXT_HEAD, 4, L"hea~", 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_stays),
		cmocka_unit_test(the_end_or_the_beginning_is_cut),
		cmocka_unit_test(columns_are_not_characters),
		cmocka_unit_test(nothing_reaches_the_terminal_unescaped),
		cmocka_unit_test(what_the_locale_lacks_is_a_question_mark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
