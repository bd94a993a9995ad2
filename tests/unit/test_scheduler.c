/* SPDX-License-Identifier: MIT */
/* What the kernel's scheduler tells about a thread, as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/linux/clocks/scheduler.h"

static void schedstat_has_three_numbers(void **state)
{
	struct schedstat schedstat = schedstat_parse("18446744073709551615 20 3\n");

	(void)state;
	assert_true(schedstat.cpu_ns == UINT64_MAX);
	assert_int_equal(schedstat.waited_ns, 20);
	assert_int_equal(schedstat.runs, 3);
	schedstat = schedstat_parse("0 90  1");
	assert_int_equal(schedstat.cpu_ns, 0);
	assert_int_equal(schedstat.waited_ns, 90);
	assert_int_equal(schedstat.runs, 1);
	/* What is missing is 0. */
	schedstat = schedstat_parse("12");
	assert_int_equal(schedstat.cpu_ns, 12);
	assert_int_equal(schedstat.waited_ns, 0);
	assert_int_equal(schedstat.runs, 0);
	schedstat = schedstat_parse("a 1 2");
	assert_int_equal(schedstat.cpu_ns, 0);
	assert_int_equal(schedstat.runs, 0);
}

/* As Linux 6 writes it; what comes between is left out. */
static const char sched[] = "luajit (4242, #threads: 1)\n"
			    "-------------------------------------------------------------------\n"
			    "se.exec_start                                :      81230456.123456\n"
			    "se.vruntime                                  :             7.000001\n"
			    "se.sum_exec_runtime                          :           912.000034\n"
			    "se.nr_migrations                             :                   12\n"
			    "nr_switches                                  :                  105\n"
			    "nr_voluntary_switches                        :                  100\n"
			    "nr_involuntary_switches                      :                    5\n";

static void sched_has_times_and_switches(void **state)
{
	struct switches switches;

	(void)state;
	assert_true(switches_parse(sched, &switches));
	assert_int_equal(switches.left_at, UINT64_C(81230456123456));
	assert_int_equal(switches.cpu_ns, 912000034);
	assert_int_equal(switches.count, 105);
	assert_int_equal(switches.sleeps, 100);
	/* Old kernels have shorter lines, and no decimals are none. */
	assert_true(switches_parse("se.exec_start : 3\nse.sum_exec_runtime  : 4.000005\nnr_switches: 6",
				   &switches));
	assert_int_equal(switches.left_at, 3000000);
	assert_int_equal(switches.cpu_ns, 4000005);
	assert_int_equal(switches.count, 6);
	assert_int_equal(switches.sleeps, 0);
}

static void status_has_switches_alone(void **state)
{
	struct switches switches;

	(void)state;
	assert_true(switches_parse("Name:\tluajit\nThreads:\t1\nvoluntary_ctxt_switches:\t150\n"
				   "nonvoluntary_ctxt_switches:\t545\n",
				   &switches));
	assert_int_equal(switches.count, 695);
	assert_int_equal(switches.sleeps, 150);
	assert_int_equal(switches.left_at, 0);
	assert_int_equal(switches.cpu_ns, 0);
}

static void other_texts_tell_nothing(void **state)
{
	static const char *const others[] = {
		"",
		"\n",
		"nr_switches",
		"nr_switches 5\n",
		"nr_switchess : 5\n",
		" nr_switches : 5\n",
		"voluntary_ctxt_switches:\t150\n",
		"nonvoluntary_ctxt_switches:\t545\n",
		"se.exec_start : 3.000000\n",
	};
	struct switches switches;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(switches_parse(others[i], &switches));
}

static void what_the_scheduler_says_is_read(void **state)
{
	const struct schedstat schedstat = schedstat_parse("1113521 26379 2\n");
	struct switches switches;

	(void)state;
	assert_int_equal(schedstat.cpu_ns, 1113521);
	assert_int_equal(schedstat.waited_ns, 26379);
	assert_int_equal(schedstat.runs, 2);
	/* Its name may look like anything. */
	assert_true(switches_parse("nr_switches (12, #threads: 1)\n---\n"
				   "se.exec_start      :       1010333.765022\n"
				   "se.vruntime        :            -3.000000\n"
				   "se.sum_exec_runtime   :           0.380732\n"
				   "se.nr_switches        :              7\n"
				   "nr_switches           :              5\n"
				   "nr_voluntary_switches :              4\n",
				   &switches));
	assert_int_equal(switches.count, 5);
	assert_int_equal(switches.sleeps, 4);
	assert_int_equal(switches.left_at, 1010333765022);
	assert_int_equal(switches.cpu_ns, 380732);
	assert_true(switches_parse("Name:\tx\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t2\n",
				   &switches));
	assert_int_equal(switches.count, 5);
	assert_int_equal(switches.sleeps, 3);
	assert_int_equal(switches.left_at, 0);
	/* A line may be cut. */
	assert_true(switches_parse("nr_switches : 12", &switches));
	assert_int_equal(switches.count, 12);
	assert_false(switches_parse("nr_switches", &switches));
	assert_false(switches_parse("", &switches));
	assert_false(switches_parse("voluntary_ctxt_switches:\t3\n", &switches));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_scheduler_says_is_read),
		cmocka_unit_test(schedstat_has_three_numbers),
		cmocka_unit_test(sched_has_times_and_switches),
		cmocka_unit_test(status_has_switches_alone),
		cmocka_unit_test(other_texts_tell_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
