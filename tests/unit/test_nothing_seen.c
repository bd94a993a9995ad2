/* SPDX-License-Identifier: MIT */
/* Why there is nothing to show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/targets/nothing_seen.h"

static char *command[] = { (char[]){ "sh" }, NULL };
static const struct options launches = { .launch = command }, one = { .pid_count = 1 };
static char said[4096];

static const char *explanation(const struct options *options, const struct sampler_result *result)
{
	const struct permission_verdict none = { .sentence = "" };
	FILE *file = tmpfile();
	const int saved = dup(STDERR_FILENO);
	bool is_nothing;

	assert_non_null(file);
	dup2(fileno(file), STDERR_FILENO);
	is_nothing = nothing_seen_explain(options, result, &none);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
	fclose(file);
	assert_true(is_nothing);
	return said;
}

static void a_command_is_explained_beside_what_is_not_known_of_others(void **state)
{
	struct sampler_result result = { .figures.duration_ns = UINT64_C(1000000000) };

	(void)state;
	assert_string_equal(explanation(&launches, &result), "ljspy: sh did not run LuaJIT.\n");
	result.unsearched = 1;
	result.unsearched_pid = 71;
	assert_string_equal(
		explanation(&launches, &result),
		"ljspy: sh did not run LuaJIT.\n"
		"ljspy: Whether process 71 has run LuaJIT is not known: it could not be searched in time.\n");
}

static void a_recording_that_never_began_is_not_told_as_idle(void **state)
{
	struct sampler_result result = { .end = SAMPLER_INTERRUPTED };

	(void)state;
	assert_string_equal(explanation(&one, &result),
			    "ljspy: There is no sample: the recording was to end before it had begun.\n"
			    "ljspy: ljspy was still searching for LuaJIT.\n");
	result.begin_ns = result.figures.duration_ns = 1000 * 1000;
	assert_non_null(strstr(explanation(&one, &result), "There is no sample: "));
	assert_null(strstr(said, "begun"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_is_explained_beside_what_is_not_known_of_others),
		cmocka_unit_test(a_recording_that_never_began_is_not_told_as_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
