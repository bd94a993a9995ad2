/* SPDX-License-Identifier: MIT */
/* Who has a CPU, for how long ljspy has its own, and how urgently it wants it. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/scheduler.h"
#include "src/linux/threads/on_cpu.h"
#include "src/linux/tracer/tracer_looks.h"
#include "tests/unit/target_process.h"

enum { LOOKS = 200, LOOKS_MAX = 5000 };

static const uint64_t ms_ns = 1000 * 1000;

static void run_on(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(pid, sizeof(set), &set), 0);
}

struct watched {
	struct target_process target;
	struct tracer *tracer;
	struct threads *threads;
	struct thread *thread;
};

static struct watched watch(const char *program)
{
	struct watched watched = { .target = target_process_start(program, NULL) };

	watched.tracer = tracer_new();
	watched.threads = threads_new(watched.tracer, watched.target.pid);
	assert_int_equal(threads_refresh(watched.threads, monotonic_ns(), 0), 0);
	watched.thread = threads_at(watched.threads, 0);
	return watched;
}

static void look_away(struct watched *watched)
{
	target_process_end(&watched->target);
	threads_free(watched->threads);
	tracer_free(watched->tracer);
}

/* After a moment's sleep. */
static enum presence look(const struct watched *watched)
{
	const struct timespec moment = { .tv_nsec = (long)ms_ns };
	struct own_turn *turn = tracer_turn(watched->tracer);
	uint64_t used;
	sigset_t none;

	sigemptyset(&none);
	own_turn_wait(turn, &none, NULL, &moment);
	assert_int_equal(thread_measure(watched->threads, watched->thread, &used), 0);
	return on_cpu_look(watched->threads, watched->thread, turn);
}

/* Sooner or later, that is what it is. */
static void await_presence(const struct watched *watched, enum presence presence)
{
	for (int i = 0; i < LOOKS_MAX; i++)
		if (look(watched) == presence)
			return;
	fail();
}

static void a_thread_that_sleeps_has_no_cpu(void **state)
{
	struct watched watched = watch("sleeper");

	(void)state;
	target_process_await(watched.target.pid, watched.target.pid, "S");
	for (int i = 0; i < LOOKS; i++)
		assert_int_equal(look(&watched), PRESENCE_OFF_CPU);
	look_away(&watched);
}

/* Only one of two can have the only CPU, and it is not the one that is looked at. */
static void a_thread_is_put_off_its_cpu_to_look_at_it(void **state)
{
	struct watched watched = watch("spinner");
	struct own_turn *turn;
	cpu_set_t before;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	run_on(0, sched_getcpu());
	run_on(watched.target.pid, sched_getcpu());
	for (int i = 0; i < LOOKS; i++)
		assert_int_not_equal(look(&watched), PRESENCE_ON_CPU);
	await_presence(&watched, PRESENCE_PUT_OFF);
	/* For a while, that is known without asking the kernel when ljspy's turn began. */
	turn = tracer_turn(watched.tracer);
	close(turn->sched_fd);
	turn->sched_fd = -1;
	assert_true(turn->ahead.until > turn->begin_raw_ns);
	turn->ahead.until = UINT64_MAX; /* others may have all CPUs for long */
	await_presence(&watched, PRESENCE_PUT_OFF);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	look_away(&watched);
}

/* A turn on the first CPU that began at the first ms, where the scheduler's clock is a bit ahead. */
static struct own_turn begun(void)
{
	return (struct own_turn){
		.schedstat_fd = -1,
		.sched_fd = -1,
		.begin_raw_ns = 1000000,
		.ahead = { .ns = 500, .until = 2000000 },
	};
}

static void the_beginning_of_a_turn_is_guessed_where_that_is_safe(void **state)
{
	struct own_turn turn = begun();

	(void)state;
	assert_true(own_turn_began_at(&turn, 1000500));
	assert_true(own_turn_began_at(&turn, 1000000));
	assert_false(own_turn_began_at(&turn, 1000501));
	turn = begun();
	assert_false(own_turn_began_at(&turn, 900000));
	turn = begun();
	turn.ahead.cpu = 1;
	assert_false(own_turn_began_at(&turn, 1000000));
	turn = begun();
	turn.ahead.until = 1000000;
	assert_false(own_turn_began_at(&turn, 1000000));
	/* It is not known. */
	assert_false(own_turn_began_at(&turn, 0));
}

static void a_thread_has_another_cpu(void **state)
{
	struct watched watched = watch("spinner");
	cpu_set_t before;
	int other = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	if (CPU_COUNT(&before) < 2) {
		look_away(&watched);
		skip();
	}
	run_on(0, sched_getcpu());
	while (other == sched_getcpu() || !CPU_ISSET(other, &before))
		other++;
	run_on(watched.target.pid, other);
	await_presence(&watched, PRESENCE_ON_CPU);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	look_away(&watched);
}

static void a_turn_is_used_up(void **state)
{
	uint64_t begin = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
	struct own_turn turn;

	(void)state;
	own_turn_open(&turn);
	while (clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin < ms_ns)
		;
	assert_true(own_turn_is_used_up(&turn));
	own_turn_renew(&turn);
	assert_false(own_turn_is_used_up(&turn));
	own_turn_close(&turn);
}

/* A turn begins with the end of a sleep, of which the times are known. */
static void a_sleep_tells_when_it_ended(void **state)
{
	const struct timespec asked = { .tv_nsec = 5 * 1000 * 1000 };
	struct own_turn turn;
	uint64_t begin, end;
	siginfo_t info;
	sigset_t wanted;

	(void)state;
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR1);
	assert_int_equal(sigprocmask(SIG_BLOCK, &wanted, NULL), 0);
	own_turn_open(&turn);
	for (int i = 0; i < LOOKS; i++) {
		begin = clock_now_ns(CLOCK_MONOTONIC);
		assert_int_equal(own_turn_wait(&turn, &wanted, &info, &asked), -1);
		assert_int_equal(errno, EAGAIN);
		end = clock_now_ns(CLOCK_MONOTONIC);
		/* What it slept longer than asked, it waited for a CPU, or it was stopped. */
		assert_in_range(turn.late_ns, 0, end - begin - 5 * ms_ns);
		if (turn.woken_ns)
			assert_in_range(turn.woken_ns, begin + 5 * ms_ns, end);
		else
			assert_true(end - begin > 7 * ms_ns);
		assert_in_range(own_turn_waited(&turn), 0, clock_now_ns(CLOCK_MONOTONIC) - begin - 5 * ms_ns);
	}
	/* A signal that is there already makes no sleep, so the turn goes on. */
	begin = turn.begin_raw_ns;
	kill(getpid(), SIGUSR1);
	assert_int_equal(own_turn_wait(&turn, &wanted, &info, &asked), SIGUSR1);
	assert_int_equal(info.si_pid, getpid());
	assert_int_equal(turn.woken_ns, 0);
	assert_int_equal(turn.begin_raw_ns, begin);
	own_turn_close(&turn);
	sigprocmask(SIG_UNBLOCK, &wanted, NULL);
}

/* The look is awaited on the thread's CPU, and that CPU is the thread's again afterwards. */
static void looks_are_awaited_where_the_thread_runs(void **state)
{
	struct tracer *tracer = tracer_new();
	int left = 0, cpu = 0;
	cpu_set_t before, now;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	tracer_be_urgent(tracer);
	tracer_await_look(tracer, -1);
	if (CPU_COUNT(&before) < 2 || sched_getscheduler(0) != SCHED_RR) {
		tracer_free(tracer);
		skip();
	}
	tracer_end_look(tracer);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	for (int i = 0; i < LOOKS; i++) {
		tracer_await_look(tracer, cpu);
		assert_int_equal(sched_getcpu(), cpu);
		assert_false(tracer_turn_is_used_up(tracer));
		tracer_end_look(tracer);
		left += sched_getcpu() != cpu;
		assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
		assert_true(CPU_EQUAL(&now, &before));
	}
	/* The kernel may bring ljspy back at any time. */
	assert_true(left > 0);
	/* A CPU that is not ljspy's does not matter, and ends the visit of another one. */
	tracer_await_look(tracer, cpu);
	tracer_await_look(tracer, CPU_SETSIZE);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
	tracer_end_look(tracer);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
	tracer_free(tracer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_sleeps_has_no_cpu),
		cmocka_unit_test(a_thread_is_put_off_its_cpu_to_look_at_it),
		cmocka_unit_test(the_beginning_of_a_turn_is_guessed_where_that_is_safe),
		cmocka_unit_test(a_thread_has_another_cpu),
		cmocka_unit_test(a_turn_is_used_up),
		cmocka_unit_test(a_sleep_tells_when_it_ended),
		cmocka_unit_test(looks_are_awaited_where_the_thread_runs),
	};
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
