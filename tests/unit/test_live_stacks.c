/* SPDX-License-Identifier: MIT */
/*
 * Stacks of programs that know their own, on the builds of LuaJIT that are there: tests/exactness at a
 * glance.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/exactness/exactness.h"

enum {
	LOST_PERCENT_MAX = 3, /* within signals' handlers a part is */
	LOST_MAX = 8,         /* besides: of few samples it may be several */
	NO_LINE_MAX = 5,
	WORDS_MAX = 12,
};

/* Paths are relative to the tree; each is of another time, or of other options. */
static const char *const builds[] = {
	"build/packages/luajit/usr/bin/luajit",
	"build/packages/bullseye/luajit/usr/bin/luajit",
	"build/packages/luajit2/usr/bin/luajit",
};

static char tree[PATH_MAX];

/* Skips if that build is not there. */
static void judge(size_t build, const char *const words[])
{
	char luajit[2 * PATH_MAX], program[] = "exactness", *argv[WORDS_MAX] = { program, NULL, luajit };
	struct exactness judged;

	snprintf(luajit, sizeof(luajit), "%s/%s", tree, builds[build]);
	if (access(luajit, X_OK) != 0)
		skip();
	argv[1] = (char *)(uintptr_t)words[0];
	for (size_t i = 1; words[i]; i++)
		argv[2 + i] = (char *)(uintptr_t)words[i];
	assert_int_equal(exactness_judge(argv, &judged), 0);
	assert_int_not_equal(judged.judged, 0);
	assert_int_equal(judged.wrong, 0);
	assert_in_range(judged.no_line, 0, NO_LINE_MAX);
	assert_in_range(judged.lost, 0, judged.judged * LOST_PERCENT_MAX / 100 + LOST_MAX);
}

#define JUDGE(build, ...) judge((build), (const char *const[]){ __VA_ARGS__, NULL })

static const char *const programs[] = { "callbacks", "calls",   "chunks",     "closures",    "coroutines",
					"ffi",       "hooks",   "iterators",  "metamethods", "protected",
					"recursion", "varargs", "finalizers", "growth",      "flushes" };

enum { PROGRAMS = sizeof(programs) / sizeof(programs[0]) };

static void each_instruction_of_the_interpreter(void **state)
{
	(void)state;
	for (size_t i = 0; i < PROGRAMS; i++)
		JUDGE(0, "step", programs[i], "off", "1500");
}

static void each_instruction_without_gc64(void **state)
{
	(void)state;
	JUDGE(1, "step", "calls", "off", "1500");
	JUDGE(1, "step", "coroutines", "off", "1500");
	JUDGE(1, "step", "metamethods", "off", "1500");
	JUDGE(1, "step", "varargs", "off", "1500");
	JUDGE(1, "sample", "recursion", "on", "100", "hotloop=2", "hotexit=2");
	JUDGE(1, "sample", "callbacks", "on", "100", "hotloop=2", "hotexit=2");
}

static void each_instruction_of_another_branch(void **state)
{
	(void)state;
	JUDGE(2, "step", "metamethods", "off", "1500");
	JUDGE(2, "step", "callbacks", "off", "1500");
	JUDGE(2, "sample", "protected", "on", "100", "hotloop=2", "hotexit=2");
}

static void any_time_of_compiled_code(void **state)
{
	(void)state;
	for (size_t i = 0; i < PROGRAMS; i++)
		JUDGE(0, "sample", programs[i], "on", "150", "hotloop=2", "hotexit=2");
}

/* Traces, and the ways into and out of them. */
static void each_instruction_of_compiled_code(void **state)
{
	static const char *const compiled[] = { "calls",       "callbacks", "ffi",      "iterators",
						"metamethods", "protected", "recursion" };

	(void)state;
	for (size_t i = 0; i < sizeof(compiled) / sizeof(compiled[0]); i++)
		JUDGE(0, "step", compiled[i], "on", "3000", "hotloop=2", "hotexit=2");
	JUDGE(1, "step", "recursion", "on", "3000", "hotloop=2", "hotexit=2");
	JUDGE(1, "step", "callbacks", "on", "3000", "hotloop=2", "hotexit=2");
	JUDGE(2, "step", "recursion", "on", "3000", "hotloop=2", "hotexit=2");
}

static void within_handlers_of_signals(void **state)
{
	(void)state;
	JUDGE(0, "signal", "calls", "off", "600");
	JUDGE(0, "signal", "callbacks", "off", "600");
}

/* The programs are found from their folder, packages and other files from the tree. */
static int enter(void **state)
{
	(void)state;
	return getcwd(tree, sizeof(tree)) && chdir("tests/exactness") == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_instruction_of_the_interpreter),
		cmocka_unit_test(each_instruction_without_gc64),
		cmocka_unit_test(each_instruction_of_another_branch),
		cmocka_unit_test(any_time_of_compiled_code),
		cmocka_unit_test(each_instruction_of_compiled_code),
		cmocka_unit_test(within_handlers_of_signals),
	};

	return cmocka_run_group_tests(tests, enter, NULL);
}
