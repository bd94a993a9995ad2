/* SPDX-License-Identifier: MIT */
/* What a report says of traces that samples have seen and that are not there in the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/sample/functions.h"
#include "src/survey/trace_survey.h"
#include "tests/unit/instead_of.h"
#include "unwind/jit/traces.h"

enum { PID = 10, G = 0x10000, OTHER_G = 0x20000, CPU_NS = 1000 };

/* Nothing is read in the end. */
INSTEAD_OF(lua_process_global_count);
size_t __wrap_lua_process_global_count(const struct lua_process *process)
{
	(void)process;
	return 0;
}

static struct functions *functions;
static struct trace_survey *survey;
static struct trace_process *report;

/* One state is known in the end. */
static int begin(void **state)
{
	(void)state;
	functions = functions_new();
	survey = functions ? trace_survey_new(functions) : NULL;
	report = trace_process_new(PID, "luajit");
	return survey && report && trace_process_add_vm(report, G, "libluajit") ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	trace_process_free(report);
	trace_survey_free(survey);
	functions_free(functions);
	return 0;
}

static void add(uint32_t number, uint64_t g)
{
	const struct trace trace = { .number = number, .address = 0x1000 * number };
	const struct sample sample = { .pid = PID, .trace = &trace, .trace_g = g, .cpu_ns = CPU_NS };

	assert_int_equal(trace_survey_add(survey, &sample), 0);
}

static void a_trace_is_gone_only_from_a_state_that_is_known(void **state)
{
	(void)state;
	add(1, G);
	add(2, OTHER_G);
	add(2, OTHER_G);
	add(3, 0);
	assert_int_equal(trace_survey_report(survey, NULL, NULL, report), 0);
	assert_int_equal(report->gone_ns, CPU_NS);
	assert_int_equal(report->gone_count, 1);
	assert_int_equal(report->unlisted_ns, 3 * CPU_NS);
}

static void any_sample_of_a_trace_may_tell_its_state(void **state)
{
	(void)state;
	add(1, 0);
	add(1, G);
	add(1, 0);
	assert_int_equal(trace_survey_report(survey, NULL, NULL, report), 0);
	assert_int_equal(report->gone_ns, 3 * CPU_NS);
	assert_int_equal(report->gone_count, 1);
	assert_int_equal(report->unlisted_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_trace_is_gone_only_from_a_state_that_is_known, begin, end),
		cmocka_unit_test_setup_teardown(any_sample_of_a_trace_may_tell_its_state, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
