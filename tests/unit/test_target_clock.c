/* SPDX-License-Identifier: MIT */
/* Clocks and alarms of other processes' CPU time. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/cpu_clock.h"
#include "tests/unit/target_process.h"

static const uint64_t second_ns = 1000000000u;

/* The periods that expire, with that index, while the clock goes on for so long or a bit longer. */
static uint64_t count_periods(const struct cpu_clock *clock, int index, uint64_t *ns)
{
	struct timespec moment = { 0, 100 * 1000000 };
	uint64_t periods = 0, start, now;
	sigset_t alarm;
	siginfo_t info;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGRTMIN);
	assert_int_equal(cpu_clock_now(clock, &start), 0);
	while (cpu_clock_now(clock, &now) == 0 && now - start < *ns) {
		if (sigtimedwait(&alarm, &info, &moment) != SIGRTMIN)
			continue;
		assert_int_equal(info.si_value.sival_int, index);
		periods += 1 + (uint64_t)info.si_overrun;
	}
	*ns = now - start;
	return periods;
}

static void alarm_counts_every_period_of_cpu_time(void **state)
{
	static const unsigned int rates[] = { 50, 99, 1000 };
	struct target_process target = target_process_start("spinner", NULL);
	struct cpu_clock clock;

	(void)state;
	assert_int_equal(cpu_clock_open(target.pid, &clock), 0);
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		uint64_t ns = second_ns / 2, tick = rates[i] / 100, expected, periods;

		assert_int_equal(cpu_clock_start(&clock, SIGRTMIN, 3, second_ns / rates[i]), 0);
		periods = count_periods(&clock, 3, &ns);
		expected = ns * rates[i] / second_ns;
		print_message("%u Hz: %u of %u periods\n", rates[i], (unsigned int)periods,
			      (unsigned int)expected);
		/* Those of the last tick are not in yet. */
		assert_in_range(periods, expected - expected / 20 - tick - 1, expected + 1);
		cpu_clock_stop(&clock);
	}
	cpu_clock_close(&clock);
	target_process_end(&target);
}

static void alarm_is_silent_while_the_target_sleeps(void **state)
{
	struct target_process target = target_process_start("sleeper", NULL);
	struct timespec moment = { 0, 200 * 1000000 };
	struct cpu_clock clock;
	sigset_t alarm;

	(void)state;
	target_process_await(target.pid, target.pid, "S");
	assert_int_equal(cpu_clock_open(target.pid, &clock), 0);
	assert_int_equal(cpu_clock_start(&clock, SIGRTMIN, 0, second_ns / 100), 0);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGRTMIN);
	assert_int_equal(sigtimedwait(&alarm, NULL, &moment), -1);
	assert_int_equal(errno, EAGAIN);
	cpu_clock_close(&clock);
	target_process_end(&target);
}

static void clock_of_an_ended_process_stands(void **state)
{
	struct target_process target = target_process_start("spinner", NULL);
	struct cpu_clock clock, never;
	uint64_t now = 0;

	(void)state;
	assert_int_equal(cpu_clock_open(target.pid, &clock), 0);
	target_process_end(&target);
	assert_int_equal(cpu_clock_now(&clock, &now), -ESRCH);
	assert_int_equal(cpu_clock_start(&clock, SIGRTMIN, 0, second_ns), -ESRCH);
	assert_int_equal(cpu_clock_open(target.pid, &never), -ESRCH);
	cpu_clock_close(&clock);
}

static void *sleep_for_good(void *context)
{
	for (;;)
		pause();
	return context;
}

/* A child with so many threads, which all sleep. */
static pid_t start_threads(int count)
{
	int ready[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pthread_t thread;

		alarm(60);
		for (int i = 1; i < count && !byte; i++)
			byte = pthread_create(&thread, NULL, sleep_for_good, NULL) != 0;
		if (write(ready[1], &byte, 1) == 1)
			sleep_for_good(NULL);
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 0);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* The quickest of many reads: whoever else runs makes them slower. */
static uint64_t time_of_read(const struct cpu_clock *clock)
{
	uint64_t least = UINT64_MAX, ns;

	for (int i = 0; i < 1000; i++) {
		uint64_t begin = clock_now_ns(CLOCK_MONOTONIC), took;

		assert_int_equal(cpu_clock_now(clock, &ns), 0);
		took = clock_now_ns(CLOCK_MONOTONIC) - begin;
		least = took < least ? took : least;
	}
	return least;
}

/* The kernel then keeps the sum over the threads: the sampler relies on it. */
static void clock_of_many_threads_is_quick_to_read_with_a_timer(void **state)
{
	enum { THREADS = 500 };
	pid_t pid = start_threads(THREADS);
	uint64_t without, with, sum, kept;
	struct cpu_clock clock;

	(void)state;
	assert_int_equal(cpu_clock_open(pid, &clock), 0);
	assert_int_equal(cpu_clock_now(&clock, &sum), 0);
	without = time_of_read(&clock);
	assert_int_equal(cpu_clock_start(&clock, SIGRTMIN, 0, UINT64_C(100000000) * second_ns), 0);
	with = time_of_read(&clock);
	assert_int_equal(cpu_clock_now(&clock, &kept), 0);
	print_message("%u ns, %u with a timer\n", (unsigned int)without, (unsigned int)with);
	assert_true(kept >= sum);
	assert_true(with < without / 2);
	cpu_clock_close(&clock);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alarm_counts_every_period_of_cpu_time),
		cmocka_unit_test(alarm_is_silent_while_the_target_sleeps),
		cmocka_unit_test(clock_of_an_ended_process_stands),
		cmocka_unit_test(clock_of_many_threads_is_quick_to_read_with_a_timer),
	};
	sigset_t alarm;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &alarm, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
