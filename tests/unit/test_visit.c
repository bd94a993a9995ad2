/* SPDX-License-Identifier: MIT */
/* Visits to the CPU of another thread. Which CPUs there are, and which ljspy may run on, is made up. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/linux/clocks/visit.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(sched_getaffinity);
INSTEAD_OF(sched_setaffinity);

/* Sets of CPUs, by bit. */
static struct {
	uint64_t allowed, now;
	int get_error, set_error;
	unsigned int moves;
} machine;

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret_set)
{
	assert_int_equal(pid, 0);
	assert_int_equal(size, sizeof(*ret_set));
	CPU_ZERO(ret_set);
	for (size_t cpu = 0; cpu < 64; cpu++)
		if (machine.now >> cpu & 1)
			CPU_SET(cpu, ret_set);
	errno = machine.get_error;
	return machine.get_error ? -1 : 0;
}

int __wrap_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	uint64_t bits = 0;

	assert_int_equal(pid, 0);
	assert_int_equal(size, sizeof(*set));
	for (size_t cpu = 0; cpu < 64; cpu++)
		bits |= (uint64_t)CPU_ISSET(cpu, set) << cpu;
	errno = bits ? machine.set_error : EINVAL;
	if (errno)
		return -1;
	machine.now = bits;
	machine.moves++;
	return 0;
}

static struct visit visit;

static void open_where(uint64_t allowed)
{
	machine = (__typeof__(machine)){ .allowed = allowed, .now = allowed };
	visit_open(&visit);
}

static int begin(void **state)
{
	(void)state;
	open_where(0xb);
	return 0;
}

static void a_visit_is_to_one_cpu_and_ends_on_all(void **state)
{
	(void)state;
	assert_true(visit.possible);
	visit_begin(&visit, 3);
	assert_true(visit.begun);
	assert_int_equal(visit.cpu, 3);
	assert_int_equal(machine.now, 0x8);
	visit_end(&visit);
	assert_false(visit.begun);
	assert_int_equal(machine.now, 0xb);
	visit_begin(&visit, 0);
	assert_int_equal(machine.now, 0x1);
	visit_end(&visit);
	assert_int_equal(machine.now, 0xb);
}

/* The thread has its CPU back before it is let go. */
static void who_leaves_runs_on_the_others(void **state)
{
	(void)state;
	visit_begin(&visit, 1);
	assert_true(visit_leave(&visit));
	assert_int_equal(machine.now, 0x9);
	/* Once. */
	assert_false(visit_leave(&visit));
	assert_true(visit.begun);
	visit_end(&visit);
	assert_int_equal(machine.now, 0xb);
	assert_false(visit_leave(&visit));
	assert_int_equal(machine.now, 0xb);
	/* The next visit has not left. */
	visit_begin(&visit, 1);
	assert_int_equal(machine.now, 0x2);
	assert_true(visit_leave(&visit));
}

static void leaving_may_fail(void **state)
{
	(void)state;
	visit_begin(&visit, 1);
	machine.set_error = EPERM;
	assert_false(visit_leave(&visit));
}

/* Nothing moves for that. */
static void a_visit_goes_on_where_it_is(void **state)
{
	unsigned int moves;

	(void)state;
	visit_begin(&visit, 1);
	moves = machine.moves;
	visit_begin(&visit, 1);
	assert_int_equal(machine.moves, moves);
	assert_int_equal(machine.now, 0x2);
	/* To where it has left, it goes again; to another CPU, too. */
	visit_leave(&visit);
	visit_begin(&visit, 1);
	assert_int_equal(machine.now, 0x2);
	visit_begin(&visit, 3);
	assert_int_equal(machine.now, 0x8);
	assert_int_equal(visit.cpu, 3);
}

static void where_ljspy_may_not_run_it_only_ends_a_visit(void **state)
{
	static const int wrong[] = { -1, 2, 4, 63, CPU_SETSIZE, CPU_SETSIZE + 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		visit_begin(&visit, 1);
		assert_true(visit.begun);
		visit_begin(&visit, wrong[i]);
		assert_false(visit.begun);
		assert_int_equal(machine.now, 0xb);
	}
}

static void who_has_one_cpu_visits_none(void **state)
{
	(void)state;
	open_where(0x2);
	assert_false(visit.possible);
	visit_begin(&visit, 1);
	assert_false(visit.begun);
	visit_end(&visit);
	assert_int_equal(machine.moves, 0);
	/* Nor does who cannot know where it may run. */
	machine = (__typeof__(machine)){ .allowed = 0xb, .get_error = EPERM };
	visit_open(&visit);
	visit_begin(&visit, 1);
	assert_false(visit.begun);
	assert_int_equal(machine.moves, 0);
	/* Two are enough. */
	open_where(0x3);
	visit_begin(&visit, 1);
	assert_true(visit.begun);
	assert_true(visit_leave(&visit));
	assert_int_equal(machine.now, 0x1);
}

static void a_visit_that_the_kernel_refuses_is_none(void **state)
{
	(void)state;
	machine.set_error = EPERM;
	visit_begin(&visit, 1);
	assert_false(visit.begun);
	assert_false(visit_leave(&visit));
	machine.set_error = 0;
	visit_end(&visit);
	assert_int_equal(machine.moves, 0);
}

/* Another thread does that where this one waits for its CPU in vain. */
static void who_was_freed_makes_no_more_visits(void **state)
{
	(void)state;
	/* While it waited for the look. */
	visit_begin(&visit, 1);
	machine.now = 0xb;
	for (int i = 0; i < 2; i++) {
		assert_false(visit_leave(&visit));
		assert_int_equal(machine.now, 0xb);
	}
	visit_end(&visit);
	assert_int_equal(machine.now, 0xb);
	visit_begin(&visit, 1);
	assert_false(visit.begun);
	/* Each time counts once. */
	assert_int_equal(visit.rest_ns, 10000000000);
	/* After that rest, the next one is twice as long. */
	visit.next_ns = 1;
	visit_begin(&visit, 1);
	assert_true(visit.begun);
	machine.now = 0xb;
	visit_end(&visit);
	assert_int_equal(visit.rest_ns, 20000000000);
	/* On one of the others, to which it had left. */
	open_where(0xb);
	visit_begin(&visit, 1);
	assert_true(visit_leave(&visit));
	machine.now = 0xb;
	visit_end(&visit);
	assert_int_equal(machine.now, 0xb);
	visit_begin(&visit, 1);
	assert_false(visit.begun);
	assert_int_equal(machine.now, 0xb);
	assert_int_equal(visit.rest_ns, 10000000000);
}

/* Who takes CPUs away from all of ljspy does not free it. */
static void fewer_cpus_are_no_freedom(void **state)
{
	(void)state;
	visit_begin(&visit, 1);
	assert_true(visit_leave(&visit));
	machine.now = 0x8;
	visit_end(&visit);
	visit_begin(&visit, 1);
	assert_true(visit.begun);
}

static void after_the_close_there_are_no_visits(void **state)
{
	(void)state;
	visit_begin(&visit, 1);
	visit_close(&visit);
	assert_int_equal(machine.now, 0xb);
	assert_false(visit.begun);
	visit_begin(&visit, 1);
	assert_false(visit.begun);
	assert_int_equal(machine.now, 0xb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_visit_is_to_one_cpu_and_ends_on_all, begin),
		cmocka_unit_test_setup(who_leaves_runs_on_the_others, begin),
		cmocka_unit_test_setup(leaving_may_fail, begin),
		cmocka_unit_test_setup(a_visit_goes_on_where_it_is, begin),
		cmocka_unit_test_setup(where_ljspy_may_not_run_it_only_ends_a_visit, begin),
		cmocka_unit_test_setup(who_has_one_cpu_visits_none, begin),
		cmocka_unit_test_setup(a_visit_that_the_kernel_refuses_is_none, begin),
		cmocka_unit_test_setup(who_was_freed_makes_no_more_visits, begin),
		cmocka_unit_test_setup(fewer_cpus_are_no_freedom, begin),
		cmocka_unit_test_setup(after_the_close_there_are_no_visits, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
