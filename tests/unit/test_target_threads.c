/* SPDX-License-Identifier: MIT */
/* Keeping up with the threads of a process. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/clocks/cpu_clock.h"
#include "src/linux/threads/threads.h"
#include "tests/unit/target_process.h"

enum { PID_MAX = 1 << 22 }; /* PID_MAX_LIMIT of Linux on 64-bit machines */

static const uint64_t second_ns = 1000000000u;
/* For a stop that comes, however loaded the machine is. */
static const uint64_t patience_ns = 20000000000u;

static uint64_t process_ns(pid_t pid)
{
	struct cpu_clock clock;
	uint64_t ns;

	assert_int_equal(cpu_clock_open(pid, &clock), 0);
	assert_int_equal(cpu_clock_now(&clock, &ns), 0);
	return ns;
}

static void threads_are_seized_and_named(void **state)
{
	struct target_process target = target_process_start("spinner", (const char *[]){ "3", NULL });
	struct tracer *tracer = tracer_new();
	struct threads *threads = threads_new(tracer, target.pid);

	(void)state;
	assert_int_equal(threads_count(threads), 0);
	assert_int_equal(threads_refresh(threads, monotonic_ns(), 0), 0);
	assert_int_equal(threads_count(threads), 3);
	assert_int_equal(threads_at(threads, 0)->tid, target.pid);
	assert_string_equal(threads_at(threads, 0)->name, "spinner");
	/* They name themselves; that is seen within a second. */
	for (uint64_t second = 1; second < 1000; second++) {
		assert_int_equal(threads_refresh(threads, monotonic_ns() + second * second_ns, 0), 0);
		for (size_t i = 0; i < 3; i++)
			thread_refresh_name(threads, threads_at(threads, i));
		if (strcmp(threads_at(threads, 1)->name, "spinner") != 0 &&
		    strcmp(threads_at(threads, 2)->name, "spinner") != 0)
			break;
		sleep_ms(2);
	}
	for (size_t i = 0; i < 3; i++) {
		struct thread *thread = threads_at(threads, i);

		assert_ptr_equal(thread->tracee, tracer_find(tracer, thread->tid));
		assert_int_equal(thread->tracee->pid, target.pid);
		assert_string_equal(thread->name, i ? "spin) S 1" : "spinner");
		assert_true(thread_is_running(threads, thread));
		assert_int_equal(tracer_stop_running(tracer, thread->tracee, patience_ns), 0);
		tracer_resume(tracer, thread->tracee);
	}
	target_process_end(&target);
	threads_free(threads);
	tracer_free(tracer);
}

static void cpu_time_is_counted_from_the_first_look_and_exact_when_held(void **state)
{
	struct target_process target = target_process_start("spinner", NULL);
	struct tracer *tracer = tracer_new();
	struct threads *threads = threads_new(tracer, target.pid);
	uint64_t first, before, used, sum = 0;
	struct registers registers;
	struct thread *thread;

	(void)state;
	while (process_ns(target.pid) < second_ns / 20)
		sleep_ms(5);
	assert_int_equal(threads_refresh(threads, monotonic_ns(), 0), 0);
	thread = threads_at(threads, 0);
	first = thread->cpu_ns;
	assert_true(first > second_ns / 50); /* that was not ours to count */
	for (int i = 0; i < 20; i++) {
		sleep_ms(2);
		assert_int_equal(tracer_stop(tracer, thread->tracee, patience_ns), 0);
		assert_int_equal(tracer_registers(thread->tracee, &registers), 0);
		assert_int_equal(thread_measure(threads, thread, &used), 0);
		before = process_ns(target.pid);
		assert_int_equal(thread->cpu_ns, before);
		tracer_resume(tracer, thread->tracee);
		tracer_poll(tracer);
		sum += used;
	}
	assert_int_equal(sum, thread->cpu_ns - first);
	target_process_end(&target);
	threads_free(threads);
	tracer_free(tracer);
}

static void sleeping_thread_shows_its_system_call(void **state)
{
	struct target_process target = target_process_start("sleeper", NULL);
	struct tracer *tracer = tracer_new();
	struct threads *threads = threads_new(tracer, target.pid);
	enum thread_state what;
	struct thread_call call, again;

	(void)state;
	target_process_await(target.pid, target.pid, "S");
	assert_int_equal(threads_refresh(threads, monotonic_ns(), 0), 0);
	assert_false(thread_is_running(threads, threads_at(threads, 0)));
	assert_int_equal(thread_read_state(threads, threads_at(threads, 0), &what, &call), 0);
	assert_int_equal(what, THREAD_BLOCKED);
	assert_true(call.known);
	assert_int_equal(call.number, SYS_epoll_wait);
	assert_int_equal(call.arguments[2], 1);       /* maxevents */
	assert_int_equal((int)call.arguments[3], -1); /* timeout */
	assert_true(call.pc > 4096 && call.sp > 4096);
	assert_int_equal(tracer_stop_running(tracer, threads_at(threads, 0)->tracee, patience_ns), -EAGAIN);
	assert_int_equal(thread_read_state(threads, threads_at(threads, 0), &what, &again), 0);
	assert_true(thread_call_is_same(&call, &again));
	target_process_end(&target);
	assert_int_equal(thread_read_state(threads, threads_at(threads, 0), &what, NULL), -ESRCH);
	assert_false(thread_is_running(threads, threads_at(threads, 0)));
	threads_free(threads);
	tracer_free(tracer);
}

static void uninterruptible_thread_is_told_from_a_sleeping_one(void **state)
{
	struct target_process target = target_process_start("vforker", NULL);
	struct tracer *tracer = tracer_new();
	struct threads *threads = threads_new(tracer, target.pid);
	enum thread_state what;

	(void)state;
	target_process_await(target.pid, target.pid, "D");
	assert_int_equal(threads_refresh(threads, monotonic_ns(), 0), 0);
	assert_int_equal(thread_read_state(threads, threads_at(threads, 0), &what, NULL), 0);
	assert_int_equal(what, THREAD_UNINTERRUPTIBLE);
	assert_false(thread_is_running(threads, threads_at(threads, 0)));
	target_process_end(&target);
	threads_free(threads);
	tracer_free(tracer);
}

static void a_thousand_threads_a_second_are_survived(void **state)
{
	struct target_process target = target_process_start("churner", (const char *[]){ "1000", NULL });
	struct tracer *tracer = tracer_new();
	struct threads *threads = threads_new(tracer, target.pid);
	uint64_t end = monotonic_ns() + 2 * second_ns;
	static bool known[PID_MAX];
	int seen = 0, started;
	char line[16];

	(void)state;
	while (monotonic_ns() < end) {
		assert_int_equal(threads_refresh(threads, monotonic_ns(), process_ns(target.pid)), 0);
		for (size_t i = 0; i < threads_count(threads); i++) {
			struct thread *thread = threads_at(threads, i);
			int error;

			seen += !known[thread->tid];
			known[thread->tid] = true;
			if (!thread_is_running(threads, thread))
				continue;
			error = tracer_stop(tracer, thread->tracee, patience_ns);
			assert_true(error == 0 || error == -ESRCH);
			tracer_resume(tracer, thread->tracee);
		}
		tracer_poll(tracer);
		assert_true(threads_count(threads) < 1000); /* the dead are dropped */
		sleep_ms(1);
	}
	target_process_tell(&target, "enough");
	while (tracer_find(tracer, target.pid)->state != TRACEE_GONE) {
		tracer_poll(tracer);
		sleep_ms(1);
	}
	assert_int_equal(threads_refresh(threads, monotonic_ns(), 0), -ESRCH);
	target_process_line(&target, line, sizeof(line));
	started = atoi(line);
	print_message("%d of %d threads were seen\n", seen, started);
	assert_true(started > 200);
	assert_true(seen > started / 10);
	target_process_end(&target);
	threads_free(threads);
	tracer_free(tracer);
}

static void process_whose_first_thread_has_ended_goes_on(void **state)
{
	struct target_process target = target_process_start("zombie_leader", NULL);
	struct tracer *tracer = tracer_new();
	struct threads *threads = threads_new(tracer, target.pid);

	(void)state;
	target_process_await(target.pid, target.pid, "Z");
	assert_int_equal(threads_refresh(threads, monotonic_ns(), 0), 0);
	assert_int_equal(threads_count(threads), 1);
	assert_int_not_equal(threads_at(threads, 0)->tid, target.pid);
	assert_true(thread_is_running(threads, threads_at(threads, 0)));
	assert_int_equal(tracer_stop(tracer, threads_at(threads, 0)->tracee, patience_ns), 0);
	tracer_resume(tracer, threads_at(threads, 0)->tracee);
	target_process_end(&target);
	threads_free(threads);
	tracer_free(tracer);
}

static void ended_process_has_no_threads(void **state)
{
	struct tracer *tracer = tracer_new();
	pid_t child = fork();
	struct threads *threads;

	(void)state;
	if (child == 0)
		_exit(0);
	target_process_await(child, child, "Z");
	threads = threads_new(tracer, child);
	assert_int_equal(threads_refresh(threads, monotonic_ns(), 0), -ESRCH);
	waitpid(child, NULL, 0);
	assert_int_equal(threads_refresh(threads, monotonic_ns(), 0), -ESRCH);
	threads_free(threads);
	tracer_free(tracer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_are_seized_and_named),
		cmocka_unit_test(cpu_time_is_counted_from_the_first_look_and_exact_when_held),
		cmocka_unit_test(sleeping_thread_shows_its_system_call),
		cmocka_unit_test(uninterruptible_thread_is_told_from_a_sleeping_one),
		cmocka_unit_test(a_thousand_threads_a_second_are_survived),
		cmocka_unit_test(process_whose_first_thread_has_ended_goes_on),
		cmocka_unit_test(ended_process_has_no_threads),
	};
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
