/* SPDX-License-Identifier: MIT */
/* Ways to run in time: on the target's CPU, and urgently. Afterwards all is as before. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/clocks/urgent.h"
#include "src/linux/clocks/visit.h"

static cpu_set_t allowed_now(void)
{
	cpu_set_t allowed;

	assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	return allowed;
}

static int last_of(const cpu_set_t *set)
{
	int last = -1;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t)cpu, set))
			last = cpu;
	return last;
}

static void a_visit_is_on_one_cpu_and_ends(void **state)
{
	cpu_set_t before = allowed_now(), during, after;
	struct visit visit;
	int cpu = last_of(&before);

	(void)state;
	visit_open(&visit);
	if (CPU_COUNT(&before) < 2) {
		assert_false(visit.possible);
		skip();
	}
	assert_true(visit.possible);
	visit_end(&visit);
	assert_false(visit_leave(&visit));
	visit_begin(&visit, -1);
	assert_false(visit.begun);
	visit_begin(&visit, CPU_SETSIZE);
	assert_false(visit.begun);
	visit_begin(&visit, cpu);
	assert_true(visit.begun);
	during = allowed_now();
	assert_int_equal(CPU_COUNT(&during), 1);
	assert_true(CPU_ISSET((size_t)cpu, &during));
	assert_int_equal(sched_getcpu(), cpu);
	visit_begin(&visit, cpu);
	assert_int_equal(sched_getcpu(), cpu);
	/* The next one ends it. */
	for (int other = 0; other < cpu; other++) {
		if (!CPU_ISSET((size_t)other, &before))
			continue;
		visit_begin(&visit, other);
		assert_int_equal(sched_getcpu(), other);
	}
	assert_true(visit.begun);
	visit_begin(&visit, -1);
	assert_false(visit.begun);
	after = allowed_now();
	assert_true(CPU_EQUAL(&before, &after));
	/* Once left, ljspy stays away until the end, or until it comes again. */
	visit_begin(&visit, cpu);
	assert_true(visit_leave(&visit));
	assert_false(visit_leave(&visit));
	after = allowed_now();
	assert_int_equal(CPU_COUNT(&after), CPU_COUNT(&before) - 1);
	assert_false(CPU_ISSET((size_t)cpu, &after));
	visit_begin(&visit, cpu);
	assert_int_equal(sched_getcpu(), cpu);
	visit_leave(&visit);
	visit_end(&visit);
	assert_false(visit.begun);
	after = allowed_now();
	assert_true(CPU_EQUAL(&before, &after));
	visit_begin(&visit, cpu);
	visit_close(&visit);
	after = allowed_now();
	assert_true(CPU_EQUAL(&before, &after));
	visit_begin(&visit, cpu);
	assert_false(visit.begun);
}

static void one_cpu_is_no_place_to_visit(void **state)
{
	cpu_set_t before = allowed_now(), one;
	struct visit visit;

	(void)state;
	CPU_ZERO(&one);
	CPU_SET((size_t)last_of(&before), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	visit_open(&visit);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_false(visit.possible);
	visit_begin(&visit, last_of(&before));
	assert_false(visit.begun);
}

/* Has a process that is started now neither a real-time policy nor a better nice value? */
static bool child_is_ordinary(int nice)
{
	const pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(sched_getscheduler(0) == SCHED_OTHER && getpriority(PRIO_PROCESS, 0) >= nice ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void urgency_ends_as_it_began(void **state)
{
	int policy = sched_getscheduler(0), nice = getpriority(PRIO_PROCESS, 0);
	struct rlimit before, after;
	struct urgent urgent;
	int nice_between;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_RTTIME, &before), 0);
	urgent_open(&urgent);
	/* Between holds ljspy has a better nice value, where it may have any and was given none. */
	nice_between = getpriority(PRIO_PROCESS, 0);
	assert_int_equal(nice_between < nice, urgent.means == URGENT_BY_POLICY && nice == 0);
	for (int i = 0; i < 120; i++) {
		urgent_begin(&urgent);
		assert_int_equal(urgent.begun, urgent.means != URGENT_NOT_ALLOWED);
		if (urgent.means == URGENT_BY_POLICY)
			assert_int_equal(sched_getscheduler(0), SCHED_RR | SCHED_RESET_ON_FORK);
		if (urgent.means == URGENT_BY_NICE)
			assert_true(getpriority(PRIO_PROCESS, 0) < nice);
		urgent_end(&urgent);
		assert_false(urgent.begun);
		/* What ljspy starts meanwhile has neither. */
		assert_int_equal(sched_getscheduler(0),
				 urgent.means == URGENT_BY_POLICY ? policy | SCHED_RESET_ON_FORK : policy);
		assert_int_equal(getpriority(PRIO_PROCESS, 0), nice_between);
	}
	urgent_begin(&urgent);
	assert_true(urgent.means != URGENT_BY_POLICY || child_is_ordinary(nice));
	urgent_close(&urgent);
	assert_int_equal(sched_getscheduler(0), policy);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), nice);
	assert_int_equal(getrlimit(RLIMIT_RTTIME, &after), 0);
	assert_int_equal(after.rlim_cur, before.rlim_cur);
	urgent_begin(&urgent);
	assert_false(urgent.begun);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_visit_is_on_one_cpu_and_ends),
		cmocka_unit_test(one_cpu_is_no_place_to_visit),
		cmocka_unit_test(urgency_ends_as_it_began),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
