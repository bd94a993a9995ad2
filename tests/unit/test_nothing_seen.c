/* SPDX-License-Identifier: MIT */
/* Why there is nothing to show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/targets/nothing_seen.h"
#include "tests/unit/told.h"

enum { MS = 1000 * 1000 };

static char *command[] = { (char[]){ "sh" }, NULL };
static const struct options launches = { .launch = command }, one = { .pid_count = 1 };
static const struct options follows = { .launch = command, .subprocesses = true };

static const char *explanation(const struct options *options, const struct sampler_result *result)
{
	const struct permission_verdict none = { .sentence = "" };
	bool is_nothing;

	told_begin();
	is_nothing = nothing_seen_explain(options, result, &none);
	told_end();
	assert_true(is_nothing);
	return told;
}

static void a_command_is_explained_beside_what_is_not_known_of_others(void **state)
{
	struct sampler_result result = { .figures.duration_ns = UINT64_C(1000000000) };

	(void)state;
	assert_string_equal(explanation(&launches, &result),
			    "ljspy: sh did not run LuaJIT.\n"
			    "ljspy: If a program does that it starts, add --subprocesses.\n");
	assert_string_equal(explanation(&follows, &result), "ljspy: sh did not run LuaJIT.\n");
	result.unsearched = 1;
	result.unsearched_pid = 71;
	assert_string_equal(
		explanation(&follows, &result),
		"ljspy: sh did not run LuaJIT.\n"
		"ljspy: Whether process 71 has run LuaJIT is not known: it could not be searched in time.\n");
}

static void an_interrupted_recording_is_explained_as_any_other(void **state)
{
	const struct sampler_result result = { .end = SAMPLER_INTERRUPTED,
					       .begin_ns = 1,
					       .figures.duration_ns = 1000 * 1000 };

	(void)state;
	assert_non_null(strstr(explanation(&one, &result), "There is no sample: "));
	assert_non_null(strstr(told, "1.0 ms"));
}

/* What an idle program waits for is no help with one that runs. */
static void a_low_rate_is_the_reason_where_the_usual_one_has_samples(void **state)
{
	const struct options seldom = { .pid_count = 1, .rate_hz = 1 };
	struct sampler_result result = { .figures = { .duration_ns = 1000 * MS, .target_cpu_ns = 900 * MS } };

	(void)state;
	assert_string_equal(explanation(&seldom, &result),
			    "ljspy: There is no sample: in 1000.0 ms the target used a CPU for 900.0.\n"
			    "ljspy: Let it run for longer, or take samples more often: -r 99\n");
	result.figures.target_cpu_ns = MS;
	assert_non_null(strstr(explanation(&seldom, &result), "--off-cpu"));
}

/* Nor is it with one that gets no CPU. */
static void a_target_with_work_is_not_called_idle(void **state)
{
	struct sampler_result result = { .wants_cpu = true,
					 .figures = { .duration_ns = 1000 * MS, .target_cpu_ns = MS / 100 } };

	(void)state;
	assert_string_equal(
		explanation(&one, &result),
		"ljspy: There is no sample: in 1000.0 ms the target used a CPU for 0.0, and it had "
		"work in the end.\n"
		"ljspy: It may have waited for a CPU, as on a full machine: let it run for longer.\n");
	result.wants_cpu = false;
	assert_non_null(strstr(explanation(&one, &result), "--off-cpu"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_is_explained_beside_what_is_not_known_of_others),
		cmocka_unit_test(a_target_with_work_is_not_called_idle),
		cmocka_unit_test(a_low_rate_is_the_reason_where_the_usual_one_has_samples),
		cmocka_unit_test(an_interrupted_recording_is_explained_as_any_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
