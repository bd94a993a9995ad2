/* SPDX-License-Identifier: MIT */
/* The CPU time of a worker, from call to call. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/cpu_clock.h"
#include "src/nginx/worker_load.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/target_process.h"

static void forget(struct worker_load *load)
{
	free(load->queues);
	load->queues = NULL;
}

/* A worker that never leaves its CPU, and how often ljspy loses its own one between two clocks. */
static struct {
	bool is_made_up;
	unsigned int delays;
} spins;

INSTEAD_OF(cpu_clock_now);

int __wrap_cpu_clock_now(const struct cpu_clock *clock, uint64_t *ret_ns)
{
	const struct timespec moment = { .tv_nsec = 50 * 1000 * 1000 };

	if (!spins.is_made_up)
		return __real_cpu_clock_now(clock, ret_ns);
	*ret_ns = clock_now_ns(CLOCK_MONOTONIC);
	if (spins.delays) {
		spins.delays--;
		nanosleep(&moment, NULL);
	}
	return 0;
}

static uint64_t cpu_ns_of(pid_t pid)
{
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	return clock_now_ns(clock);
}

/* Whatever else runs, it has some CPU time of which no call has told. */
static void await_use_of_cpu(pid_t pid)
{
	const struct timespec moment = { .tv_nsec = 1000 * 1000 };
	const uint64_t begin_ns = cpu_ns_of(pid);

	while (cpu_ns_of(pid) == begin_ns)
		nanosleep(&moment, NULL);
}

static void cpu_time_is_that_since_the_last_call(void **state)
{
	struct target_process spinner = target_process_start("spinner", (const char *[]){ "1", NULL });
	struct worker_load load = { 0 };
	uint64_t before_ns = cpu_ns_of(spinner.pid), after_ns;

	(void)state;
	/* It has used CPU time, of an unknown span. */
	assert_int_equal(worker_load_measure(spinner.pid, &load), 0);
	after_ns = cpu_ns_of(spinner.pid);
	assert_false(load.knows_cpu);
	assert_int_equal(load.queue_count, 0);
	for (int i = 0; i < 2; i++) {
		const uint64_t earlier_at = load.cpu_at, begun_ns = before_ns, ended_ns = after_ns;
		double used_ns;

		await_use_of_cpu(spinner.pid);
		before_ns = cpu_ns_of(spinner.pid);
		assert_int_equal(worker_load_measure(spinner.pid, &load), 0);
		after_ns = cpu_ns_of(spinner.pid);
		assert_true(load.knows_cpu);
		/* It waits until the last call was a tenth of a second ago. */
		assert_true(load.cpu_at - earlier_at >= 100 * 1000 * 1000);
		/* The clock is read within each call. */
		used_ns = load.cpu * (double)(load.cpu_at - earlier_at);
		assert_true(used_ns > 0);
		assert_true(used_ns >= (double)(before_ns - ended_ns) - 1);
		assert_true(used_ns <= (double)(after_ns - begun_ns) + 1);
	}
	target_process_end(&spinner);
	forget(&load);
}

static void a_worker_that_sleeps_uses_no_cpu_time(void **state)
{
	const pid_t sleeper = target_process_sleeper("sleeper", 0, true);
	struct worker_load load = { 0 };

	(void)state;
	worker_load_open(sleeper, &load);
	assert_int_equal(worker_load_measure(sleeper, &load), 0);
	assert_true(load.knows_cpu);
	assert_true(load.cpu < 0.01);
	target_process_end_sleeper(sleeper);
	forget(&load);
}

/*
 * Its CPU time and its moment would be of two different ones: it would have more than a CPU, or less than it
 * has.
 */
static void a_cpu_that_ljspy_loses_makes_no_worker_busier(void **state)
{
	const pid_t sleeper = target_process_sleeper("sleeper", 0, true);

	(void)state;
	spins.is_made_up = true;
	for (int at_end = 0; at_end < 2; at_end++) {
		struct worker_load load = { 0 };

		spins.delays = at_end ? 0 : 2;
		worker_load_open(sleeper, &load);
		spins.delays = at_end ? 2 : 0;
		assert_int_equal(worker_load_measure(sleeper, &load), 0);
		assert_int_equal(spins.delays, 0);
		assert_true(load.knows_cpu);
		assert_true(load.cpu > 0.9 && load.cpu < 1.1);
		forget(&load);
	}
	/* Where it loses it again and again, it does not try for ever. */
	spins.delays = UINT_MAX;
	worker_load_open(sleeper, &(struct worker_load){ 0 });
	assert_true(spins.delays < UINT_MAX);
	spins.is_made_up = false;
	target_process_end_sleeper(sleeper);
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
		cmocka_unit_test(a_worker_that_sleeps_uses_no_cpu_time),
		cmocka_unit_test(a_cpu_that_ljspy_loses_makes_no_worker_busier),
		cmocka_unit_test(of_a_worker_that_has_ended_no_cpu_time_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
