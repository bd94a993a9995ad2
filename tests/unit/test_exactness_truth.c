/* SPDX-License-Identifier: MIT */
/* What the judge of stacks in tests/exactness takes for right, and what for wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/exactness/truth.h"

enum { POSITION = 10, FRAMES = 3 };

/* f(), defined in line 1, runs lines 2 and 3, and calls insert() in line 2. */
static char log_text[] = "stack calls.lua:1:2\n"
			 "stack calls.lua:1:3\n"
			 "stack calls.lua:1:2;[insert]\n"
			 "event 10 1\n"
			 "event 10 2\n"
			 "event 11 1\n"
			 "event 11 2\n"
			 "call 3\n"
			 "ready 1000\n";

static struct truth *truth;
static struct stack_text said;

static int begin(void **state)
{
	FILE *log = fmemopen(log_text, strlen(log_text), "r");
	uint64_t table;

	(void)state;
	assert_non_null(log);
	truth = truth_read(log, "calls", &table);
	assert_non_null(truth);
	assert_int_equal(table, 0x1000);
	fclose(log);
	return 0;
}

static int end(void **state)
{
	(void)state;
	truth_free(truth);
	return 0;
}

/* f() in this line, with builtins on top: two names at most, NULL for none. */
static enum verdict judge(uint32_t line, bool compiled, const char *builtin, const char *top)
{
	const struct function f = { .kind = FRAME_LUA, .firstline = 1, .file = "@calls.lua" };
	const struct function builtins[] = { { .kind = FRAME_BUILTIN, .name = builtin },
					     { .kind = FRAME_BUILTIN, .name = top } };
	struct frame frames[FRAMES];
	size_t count = 0;

	if (top)
		frames[count++] = (struct frame){ .function = &builtins[1] };
	if (builtin)
		frames[count++] = (struct frame){ .function = &builtins[0] };
	frames[count++] = (struct frame){ .function = &f, .line = line, .compiled = compiled };
	assert_true(stack_text_fill(&said, frames, count));
	return truth_judge(truth, POSITION, &said);
}

static void only_lines_that_ran_are_right(void **state)
{
	(void)state;
	for (unsigned compiled = 0; compiled < 2; compiled++) {
		assert_int_equal(judge(2, compiled, NULL, NULL), VERDICT_RIGHT);
		assert_int_equal(judge(3, compiled, NULL, NULL), VERDICT_RIGHT);
		assert_int_equal(judge(4, compiled, NULL, NULL), VERDICT_WRONG);
	}
}

/* As machine code that has just been entered. */
static void a_definition_is_right_though_no_line_ran_there(void **state)
{
	(void)state;
	assert_int_equal(judge(1, true, NULL, NULL), VERDICT_RIGHT);
}

static void only_builtins_that_were_called_are_right(void **state)
{
	(void)state;
	for (unsigned compiled = 0; compiled < 2; compiled++) {
		assert_int_equal(judge(2, compiled, "table.insert", NULL), VERDICT_RIGHT);
		assert_int_equal(judge(2, compiled, "table.remove", NULL), VERDICT_WRONG);
		assert_int_equal(judge(3, compiled, "table.insert", NULL), VERDICT_WRONG);
		assert_int_equal(judge(2, compiled, "table.insert", "table.insert"), VERDICT_WRONG);
	}
}

/* Its own frame is on any stack, which is still judged. */
static void a_finalizer_may_be_on_any_stack(void **state)
{
	(void)state;
	assert_int_equal(judge(2, true, "__gc", NULL), VERDICT_RIGHT);
	assert_int_equal(judge(4, true, "__gc", NULL), VERDICT_WRONG);
	assert_int_equal(judge(2, true, "table.remove", "__gc"), VERDICT_WRONG);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(only_lines_that_ran_are_right),
		TEST(a_definition_is_right_though_no_line_ran_there),
		TEST(only_builtins_that_were_called_are_right),
		TEST(a_finalizer_may_be_on_any_stack),
	};

	/* The truth has its programs there. */
	if (chdir("tests/exactness") != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
