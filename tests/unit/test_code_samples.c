/* SPDX-License-Identifier: MIT */
/* How many samples were at which instructions, of the interpreter's and of each trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/survey/code_samples.h"

enum { PID = 71, OTHER_PID = 72, CODE = 0x1000, MCODE = 0x7000 };

static const struct trace first = { .number = 1, .mcode = MCODE },
			  again = { .number = 1, .mcode = MCODE + 1 },
			  second = { .number = 2, .mcode = MCODE };
static struct code_samples *samples;

static int begin(void **state)
{
	(void)state;
	samples = code_samples_new();
	return samples ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	code_samples_free(samples);
	return 0;
}

static void add(pid_t pid, const struct trace *trace, uint64_t address, uint64_t cpu_ns)
{
	const struct sample sample = { .pid = pid, .trace = trace, .code_pc = address, .cpu_ns = cpu_ns };

	assert_int_equal(code_samples_add(samples, &sample), 0);
}

static void assert_range(pid_t pid, const struct trace *trace, uint64_t from, uint64_t to, uint64_t count,
			 uint64_t cpu_ns)
{
	struct listing_samples of;
	uint64_t found, found_ns;

	assert_int_equal(code_samples_of(samples, pid, trace, &of), 0);
	of.at(of.context, from, to, &found, &found_ns);
	assert_int_equal(found, count);
	assert_int_equal(found_ns, cpu_ns);
}

static void a_range_has_the_samples_of_its_instructions(void **state)
{
	static const uint64_t addresses[] = { CODE + 12, CODE, CODE + 4, CODE + 16, CODE + 8, CODE + 4 };

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		add(PID, NULL, addresses[i], 1 << i);
	for (size_t from = 0; from < 6; from++)
		for (size_t to = from; to < 6; to++) {
			const uint64_t begins = CODE + 4 * from, ends = CODE + 4 * to;
			uint64_t count = 0, cpu_ns = 0;

			for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
				if (addresses[i] >= begins && addresses[i] < ends) {
					count++;
					cpu_ns += 1 << i;
				}
			assert_range(PID, NULL, begins, ends, count, cpu_ns);
		}
	/* Between instructions, too. */
	assert_range(PID, NULL, CODE + 1, CODE + 5, 2, 2 * 2 + (1 << 5));
}

/* Machine code comes at the same address again, and traces have the same numbers again. */
static void each_trace_and_process_has_its_own(void **state)
{
	(void)state;
	add(PID, NULL, CODE, 1);
	add(PID, &first, CODE, 2);
	add(PID, &again, CODE, 4);
	add(PID, &second, CODE, 8);
	add(OTHER_PID, &first, CODE, 16);
	add(PID, &first, CODE, 32);
	assert_range(PID, NULL, 0, UINT64_MAX, 1, 1);
	assert_range(PID, &first, 0, UINT64_MAX, 2, 34);
	assert_range(PID, &again, 0, UINT64_MAX, 1, 4);
	assert_range(PID, &second, 0, UINT64_MAX, 1, 8);
	assert_range(OTHER_PID, &first, 0, UINT64_MAX, 1, 16);
	assert_range(OTHER_PID, &second, 0, UINT64_MAX, 0, 0);
}

/* Of which the parts are shown. */
static void the_total_has_all_samples_of_a_process(void **state)
{
	uint64_t count, cpu_ns;

	(void)state;
	add(PID, NULL, 0, 1); /* in C */
	add(PID, &first, CODE, 2);
	add(OTHER_PID, NULL, CODE, 4);
	code_samples_total(samples, PID, &count, &cpu_ns);
	assert_int_equal(count, 2);
	assert_int_equal(cpu_ns, 3);
	assert_range(PID, NULL, 0, UINT64_MAX, 0, 0);
	code_samples_total(samples, 1, &count, &cpu_ns);
	assert_int_equal(count, 0);
	assert_int_equal(cpu_ns, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_range_has_the_samples_of_its_instructions),
		TEST(each_trace_and_process_has_its_own),
		TEST(the_total_has_all_samples_of_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
