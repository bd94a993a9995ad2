/* SPDX-License-Identifier: MIT */
/*
 * Why an output cannot be written is told with its name, and what ljspy lacks is not taken for the file's
 * fault.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

/*---- Where it cannot be written, and what to do ----*/

static void explain(const char *path, int error)
{
	told_begin();
	render_explain_open(path, "--output", -error);
	told_end();
}

static void each_reason_has_its_remedy(void **state)
{
	(void)state;
	explain("/tmp", EISDIR);
	assert_string_equal(told, "ljspy: /tmp is a directory, not a file to write to.\n"
				  "ljspy: Name a file in it: --output /tmp/NAME\n");
	explain("/tmp/", EISDIR);
	assert_int_equal(told_times("--output /tmp/NAME\n"), 1);
	explain("/no/where.svg", ENOENT);
	assert_string_equal(told, "ljspy: /no/where.svg cannot be written: there is no directory /no.\n"
				  "ljspy: Make it, or name a file elsewhere with --output FILE.\n");
	explain("/dev/null/where.svg", ENOTDIR);
	assert_int_equal(told_times("there is no directory /dev/null.\n"), 1);
	explain("/proc/where.svg", EROFS);
	assert_int_equal(told_times("the directory /proc may not be written to (Read-only file system).\n"),
			 1);
	assert_int_equal(told_times("such as --output /tmp/where.svg\n"), 1);
	explain("where.svg", EACCES);
	assert_int_equal(told_times("the current directory /"), 1);
	assert_int_equal(told_times("such as --output /tmp/where.svg\n"), 1);
	explain("-", EBADF);
	assert_string_equal(told, "ljspy: standard output: Bad file descriptor\n");
	explain("/tmp/where.svg", EIO);
	assert_string_equal(told, "ljspy: /tmp/where.svg: Input/output error\n");
}

/* No path leads to it. */
static void a_current_directory_that_is_gone_is_told(void **state)
{
	char directory[] = "/tmp/test_render.XXXXXX";
	const int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_true(here >= 0);
	assert_non_null(mkdtemp(directory));
	assert_int_equal(chdir(directory), 0);
	assert_int_equal(rmdir(directory), 0);
	explain("where.svg", ENOENT);
	assert_int_equal(fchdir(here), 0);
	close(here);
	assert_string_equal(told,
			    "ljspy: where.svg cannot be written: the current directory has been removed.\n"
			    "ljspy: Change to another one, or name a file elsewhere with --output FILE.\n");
}

static void where_the_output_is_is_told_of_files(void **state)
{
	(void)state;
	told_begin();
	render_tell("a.svg", true);
	render_tell("a.txt", false);
	render_tell("-", true);
	told_end();
	assert_string_equal(told, "ljspy: Wrote a.svg; open it in a browser\nljspy: Wrote a.txt\n");
}

/*---- What the options ask for ----*/

static void the_view_is_as_the_options_say(void **state)
{
	static char first[] = "first.ljspy", second[] = "second.ljspy";
	char *recordings[] = { first, NULL, NULL };
	struct options options = { .recordings = recordings, .lines = true, .min_percent = 2 };
	const struct session session = { .clock = WEIGHT_WALL_TIME };
	const struct time_span span = { .since_ns = 3, .until_ns = 9 };
	struct view view = render_view(&options, &session, span);

	(void)state;
	assert_int_equal(view.weight, WEIGHT_WALL_TIME);
	assert_true(view.by_line);
	assert_false(view.annotate || view.inverted || view.heatmap || view.by_clock);
	assert_true(view.min_percent > 1 && view.min_percent < 3);
	assert_int_equal(view.span.since_ns, 3);
	assert_int_equal(view.span.until_ns, 9);
	/* Several recordings have no beginning that they share. */
	recordings[1] = second;
	options.annotate = options.inverted = options.heatmap = true;
	options.lines = false;
	view = render_view(&options, &session, span);
	assert_true(view.by_clock && view.annotate && view.inverted && view.heatmap);
	assert_false(view.by_line);
	recordings[1] = NULL;
	options.archived = recordings;
	assert_true(render_view(&options, &session, span).by_clock);
	options.archived = NULL;
	options.recordings = NULL;
	assert_false(render_view(&options, &session, span).by_clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lack_of_memory_is_ljspys),
		cmocka_unit_test(too_few_files_are_told_with_the_file),
		cmocka_unit_test(another_error_is_told_as_it_is),
		cmocka_unit_test(each_reason_has_its_remedy),
		cmocka_unit_test(a_current_directory_that_is_gone_is_told),
		cmocka_unit_test(where_the_output_is_is_told_of_files),
		cmocka_unit_test(the_view_is_as_the_options_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
