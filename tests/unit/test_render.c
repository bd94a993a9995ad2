/* SPDX-License-Identifier: MIT */
/*
 * Why an output cannot be written is told with its name, and what ljspy lacks is not taken for the file's
 * fault.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "src/rendering/render.h"
#include "tests/unit/told.h"

static void write_and_fail(const char *path, int error)
{
	struct output_file file = { 0 };

	assert_true(render_open(&file, path, "-o"));
	told_begin();
	assert_false(render_finish(&file, error));
	told_end();
}

static void a_lack_of_memory_is_ljspys(void **state)
{
	(void)state;
	write_and_fail("/tmp/ljspy-render.svg", -ENOMEM);
	assert_string_equal(told, "ljspy: /tmp/ljspy-render.svg cannot be written.\n"
				  "ljspy: There is not enough memory for ljspy to do that.\n"
				  "ljspy: Allow more: ulimit -v; in a container its limit of memory.\n");
	assert_int_not_equal(access("/tmp/ljspy-render.svg", F_OK), 0);
	told_begin();
	render_explain_open("/tmp/ljspy-render.svg", "-o", -ENOMEM);
	told_end();
	assert_int_equal(told_times("/tmp/ljspy-render.svg cannot be written.\n"), 1);
	assert_int_equal(told_times("not enough memory for ljspy"), 1);
}

static void too_few_files_are_told_with_the_file(void **state)
{
	(void)state;
	told_begin();
	render_explain_open("/tmp/ljspy-render.svg", "-o", -EMFILE);
	told_end();
	assert_int_equal(told_times("/tmp/ljspy-render.svg cannot be written.\n"), 1);
	assert_int_equal(told_times("files open at a time"), 1);
}

static void another_error_is_told_as_it_is(void **state)
{
	(void)state;
	write_and_fail("/tmp/ljspy-render.svg", -ENOSPC);
	assert_string_equal(told, "ljspy: /tmp/ljspy-render.svg: No space left on device\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lack_of_memory_is_ljspys),
		cmocka_unit_test(too_few_files_are_told_with_the_file),
		cmocka_unit_test(another_error_is_told_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
