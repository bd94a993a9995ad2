/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "output/formats/format.h"

static void every_format_is_found_by_its_name_and_suffix(void **state)
{
	(void)state;
	for (size_t i = 0; i < format_count; i++) {
		char path[64];

		snprintf(path, sizeof(path), "profile.%s", formats[i].suffix);
		assert_ptr_equal(format_by_name(formats[i].name), &formats[i]);
		assert_ptr_equal(format_by_path(path), &formats[i]);
		assert_non_null(formats[i].write);
	}
}

static void the_longest_suffix_tells(void **state)
{
	(void)state;
	assert_string_equal(format_by_path("a.speedscope.json")->name, "speedscope");
	assert_string_equal(format_by_path("a.firefox.json")->name, "firefox");
	assert_string_equal(format_by_path("speedscope.json")->name, "json");
	assert_string_equal(format_by_path("/x.svg/a.json")->name, "json");
}

static void what_is_no_suffix_tells_nothing(void **state)
{
	(void)state;
	assert_null(format_by_path("json"));
	assert_null(format_by_path("a.jsonx"));
	assert_null(format_by_path("a.gz"));
	assert_null(format_by_path(""));
	assert_null(format_by_name("nothing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format_is_found_by_its_name_and_suffix),
		cmocka_unit_test(the_longest_suffix_tells),
		cmocka_unit_test(what_is_no_suffix_tells_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
