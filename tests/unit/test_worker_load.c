/* SPDX-License-Identifier: MIT */
/* The CPU time of a worker, from call to call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/nginx/worker_load.h"
#include "tests/unit/target_process.h"

static void forget(struct worker_load *load)
{
	free(load->queues);
	load->queues = NULL;
}

static void cpu_time_is_that_since_the_last_call(void **state)
{
	struct target_process spinner = target_process_start("spinner", (const char *[]){ "1", NULL });
	struct worker_load load = { 0 }, idle = { 0 };
	const pid_t sleeper = target_process_sleeper("sleeper", 0, true);

	(void)state;
	/* It has used CPU time, of an unknown span. */
	assert_int_equal(worker_load_measure(spinner.pid, &load), 0);
	assert_false(load.knows_cpu);
	assert_int_equal(load.queue_count, 0);
	for (int i = 0; i < 2; i++) {
		const uint64_t earlier_ns = load.cpu_ns, earlier_at = load.cpu_at;

		assert_int_equal(worker_load_measure(spinner.pid, &load), 0);
		assert_true(load.knows_cpu);
		/* It waits until the last call was a tenth of a second ago. */
		assert_true(load.cpu_at - earlier_at >= 100 * 1000 * 1000);
		assert_true(load.cpu ==
			    (double)(load.cpu_ns - earlier_ns) / (double)(load.cpu_at - earlier_at));
		/* One thread has a CPU at most, and its clock may lag by some ticks. */
		assert_true(load.cpu >= 0 && load.cpu < 1.5);
	}
	worker_load_open(sleeper, &idle);
	assert_int_equal(worker_load_measure(sleeper, &idle), 0);
	assert_true(idle.knows_cpu);
	assert_true(idle.cpu < 0.01);
	target_process_end(&spinner);
	target_process_end_sleeper(sleeper);
	forget(&load);
	forget(&idle);
}

static void of_a_worker_that_has_ended_no_cpu_time_is_known(void **state)
{
	const pid_t sleeper = target_process_sleeper("sleeper", 0, true);
	struct worker_load load = { 0 };

	(void)state;
	worker_load_open(sleeper, &load);
	target_process_end_sleeper(sleeper);
	load.knows_cpu = true;
	worker_load_measure(sleeper, &load);
	assert_false(load.knows_cpu);
	forget(&load);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_time_is_that_since_the_last_call),
		cmocka_unit_test(of_a_worker_that_has_ended_no_cpu_time_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
