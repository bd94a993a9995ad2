/* SPDX-License-Identifier: MIT */
/* By which means ljspy is urgent, and what its user's settings are afterwards. The kernel is made up. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/urgent.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(getpriority);
INSTEAD_OF(getrlimit);
INSTEAD_OF(nanosleep);
INSTEAD_OF(sched_getscheduler);
INSTEAD_OF(sched_setscheduler);
INSTEAD_OF(setpriority);
INSTEAD_OF(setrlimit);

enum { NICE_ALWAYS = -10, REST_AFTER = 50, URGENT_POLICY = SCHED_RR | SCHED_RESET_ON_FORK };

/* What the thread has, and what it may have. */
static struct {
	int policy, nice;
	struct rlimit rttime;
	rlim_t rlimit_nice;
	bool allows_policy, knows_limits;
	size_t sleeps, limits_set;
} kernel;

int __wrap_sched_getscheduler(pid_t pid)
{
	assert_int_equal(pid, 0);
	return kernel.policy;
}

int __wrap_sched_setscheduler(pid_t pid, int policy, const struct sched_param *parameters)
{
	const bool is_urgent = policy == SCHED_RR || policy == URGENT_POLICY;

	assert_int_equal(pid, 0);
	if (is_urgent && !kernel.allows_policy)
		return -1;
	assert_int_equal(parameters->sched_priority, is_urgent ? 1 : 0);
	kernel.policy = policy;
	return 0;
}

int __wrap_getpriority(__priority_which_t which, id_t who)
{
	assert_int_equal(which, PRIO_PROCESS);
	assert_int_equal(who, gettid());
	return kernel.nice;
}

int __wrap_setpriority(__priority_which_t which, id_t who, int nice)
{
	assert_int_equal(which, PRIO_PROCESS);
	assert_int_equal(who, gettid());
	if (nice < kernel.nice && !kernel.allows_policy && (rlim_t)(20 - nice) > kernel.rlimit_nice)
		return -1;
	kernel.nice = nice;
	return 0;
}

/* Sanitizers ask for other limits, and set them, before their own checks can run. */
__attribute__((no_sanitize_address)) static bool is_its_business(__rlimit_resource_t resource)
{
	return resource == RLIMIT_RTTIME || resource == RLIMIT_NICE;
}

__attribute__((no_sanitize_address)) int __wrap_getrlimit(__rlimit_resource_t resource,
							  struct rlimit *ret_limit)
{
	if (!is_its_business(resource))
		return __real_getrlimit(resource, ret_limit);
	if (!kernel.knows_limits)
		return -1;
	if (resource == RLIMIT_RTTIME)
		*ret_limit = kernel.rttime;
	else
		*ret_limit = (struct rlimit){ kernel.rlimit_nice, kernel.rlimit_nice };
	return 0;
}

__attribute__((no_sanitize_address)) int __wrap_setrlimit(__rlimit_resource_t resource,
							  const struct rlimit *limit)
{
	if (!is_its_business(resource))
		return __real_setrlimit(resource, limit);
	assert_int_equal(resource, RLIMIT_RTTIME);
	kernel.rttime = *limit;
	kernel.limits_set++;
	return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)time;
	(void)left;
	kernel.sleeps++;
	return 0;
}

static struct urgent urgent;

static int begin(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	kernel.policy = SCHED_OTHER;
	kernel.rttime = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	kernel.knows_limits = true;
	return 0;
}

static void by_policy_a_better_nice_value_is_kept_throughout(void **state)
{
	(void)state;
	kernel.allows_policy = true;
	urgent_open(&urgent);
	assert_int_equal(urgent.means, URGENT_BY_POLICY);
	assert_int_equal(kernel.policy, SCHED_OTHER | SCHED_RESET_ON_FORK);
	assert_int_equal(kernel.nice, NICE_ALWAYS);
	assert_int_equal(kernel.rttime.rlim_cur, URGENT_MAX_US);
	assert_true(kernel.rttime.rlim_max == RLIM_INFINITY);
	urgent_begin(&urgent);
	assert_true(urgent.begun);
	assert_int_equal(kernel.policy, URGENT_POLICY);
	urgent_end(&urgent);
	assert_false(urgent.begun);
	assert_int_equal(kernel.policy, SCHED_OTHER | SCHED_RESET_ON_FORK);
	/* It ends in a hold, too. */
	urgent_begin(&urgent);
	urgent_close(&urgent);
	assert_int_equal(kernel.policy, SCHED_OTHER);
	assert_int_equal(kernel.nice, 0);
	assert_true(kernel.rttime.rlim_cur == RLIM_INFINITY);
	urgent_begin(&urgent);
	assert_int_equal(kernel.policy, SCHED_OTHER);
	assert_false(urgent.begun);
}

static void the_users_nice_value_and_limit_stay(void **state)
{
	(void)state;
	kernel.allows_policy = true;
	kernel.nice = 5;
	kernel.policy = SCHED_BATCH | SCHED_RESET_ON_FORK;
	kernel.rttime.rlim_cur = URGENT_MAX_US - 1;
	urgent_open(&urgent);
	assert_int_equal(urgent.means, URGENT_BY_POLICY);
	assert_int_equal(kernel.nice, 5);
	assert_int_equal(kernel.limits_set, 0);
	urgent_close(&urgent);
	assert_int_equal(kernel.policy, SCHED_BATCH);
	assert_int_equal(kernel.nice, 5);
	assert_int_equal(kernel.rttime.rlim_cur, URGENT_MAX_US - 1);
	/* A longer one is shortened. */
	kernel.rttime.rlim_cur = URGENT_MAX_US + 1;
	urgent_open(&urgent);
	assert_int_equal(kernel.rttime.rlim_cur, URGENT_MAX_US);
	urgent_close(&urgent);
	assert_int_equal(kernel.rttime.rlim_cur, URGENT_MAX_US + 1);
}

static void it_rests_once_in_many_holds(void **state)
{
	(void)state;
	kernel.allows_policy = true;
	urgent_open(&urgent);
	for (size_t i = 1; i <= 2 * REST_AFTER; i++) {
		urgent_begin(&urgent);
		urgent_begin(&urgent);
		urgent_end(&urgent);
		urgent_end(&urgent);
		assert_int_equal(kernel.sleeps, i / REST_AFTER);
	}
	urgent_close(&urgent);
}

static void else_the_best_nice_value_is_taken_for_a_hold(void **state)
{
	(void)state;
	kernel.rlimit_nice = 25;
	urgent_open(&urgent);
	assert_int_equal(urgent.means, URGENT_BY_NICE);
	assert_int_equal(kernel.nice, 0);
	urgent_begin(&urgent);
	assert_int_equal(kernel.nice, -5);
	urgent_end(&urgent);
	assert_int_equal(kernel.nice, 0);
	assert_int_equal(kernel.policy, SCHED_OTHER);
	urgent_begin(&urgent);
	urgent_close(&urgent);
	assert_int_equal(kernel.nice, 0);
	assert_int_equal(kernel.sleeps, 0);
	assert_int_equal(kernel.limits_set, 0);
	/* No limit is better than the best there is. */
	kernel.rlimit_nice = RLIM_INFINITY;
	urgent_open(&urgent);
	urgent_begin(&urgent);
	assert_int_equal(kernel.nice, -20);
	urgent_close(&urgent);
	kernel.rlimit_nice = 40;
	urgent_open(&urgent);
	urgent_begin(&urgent);
	assert_int_equal(kernel.nice, -20);
	urgent_close(&urgent);
	kernel.rlimit_nice = 39;
	urgent_open(&urgent);
	urgent_begin(&urgent);
	assert_int_equal(kernel.nice, -19);
	urgent_close(&urgent);
}

/* The policy would not bear it. */
static void for_long_holds_the_nice_value_serves_even_where_the_policy_is_allowed(void **state)
{
	(void)state;
	kernel.allows_policy = true;
	urgent_open_by_nice(&urgent);
	assert_int_equal(urgent.means, URGENT_BY_NICE);
	assert_int_equal(kernel.nice, 0);
	urgent_begin(&urgent);
	assert_int_equal(kernel.nice, -20);
	assert_int_equal(kernel.policy, SCHED_OTHER);
	urgent_end(&urgent);
	assert_int_equal(kernel.nice, 0);
	urgent_begin(&urgent);
	urgent_close(&urgent);
	assert_int_equal(kernel.nice, 0);
	assert_int_equal(kernel.limits_set, 0);
}

/* Use CPU time until it is no longer urgent, but not for ever. False if it is still. */
static bool works_until_it_ends(void)
{
	enum { WORKS_NS = 2000000000 };
	const uint64_t begin_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);

	while (urgent.begun && clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns < WORKS_NS)
		;
	return !urgent.begun;
}

static void work_for(uint64_t ns)
{
	const uint64_t begin_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);

	while (clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns < ns)
		;
}

static void who_goes_on_is_urgent_until_the_work_is_long(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		kernel.allows_policy = i > 0;
		kernel.rlimit_nice = i > 0 ? 0 : 25;
		urgent_open(&urgent);
		assert_int_equal(urgent.means, i > 0 ? URGENT_BY_POLICY : URGENT_BY_NICE);
		urgent_begin(&urgent);
		urgent_go_on(&urgent);
		assert_true(urgent.begun);
		assert_true(works_until_it_ends());
		assert_int_equal(kernel.policy, i > 0 ? SCHED_OTHER | SCHED_RESET_ON_FORK : SCHED_OTHER);
		assert_int_equal(kernel.nice, i > 0 ? NICE_ALWAYS : 0);
		/* That is no end for good. */
		urgent_go_on(&urgent);
		assert_false(urgent.begun);
		urgent_begin(&urgent);
		assert_true(urgent.begun);
		urgent_close(&urgent);
	}
}

/* As each process that is looked into in one round does. */
static void work_in_pieces_is_as_long(void **state)
{
	const uint64_t begin_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);

	(void)state;
	kernel.allows_policy = true;
	urgent_open(&urgent);
	urgent_begin(&urgent);
	while (clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns < 2000000000) {
		urgent_go_on(&urgent);
		if (!urgent.begun)
			break;
		work_for(100000);
	}
	assert_false(urgent.begun);
	urgent_close(&urgent);
}

static void no_hold_is_too_long(void **state)
{
	enum { TIMES_OVER_NS = 60000000 };

	(void)state;
	kernel.allows_policy = true;
	urgent_open(&urgent);
	urgent_begin(&urgent);
	urgent_go_on(&urgent);
	urgent_begin(&urgent);
	work_for(TIMES_OVER_NS);
	assert_true(urgent.begun);
	assert_int_equal(kernel.policy, URGENT_POLICY);
	urgent_close(&urgent);
}

static void only_its_own_timer_ends_it(void **state)
{
	enum { MANY = 100 };

	(void)state;
	kernel.allows_policy = true;
	urgent_open(&urgent);
	urgent_begin(&urgent);
	urgent_go_on(&urgent);
	for (size_t i = 0; i < MANY; i++) {
		/* Else the timer might end it meanwhile. */
		urgent_begin(&urgent);
		urgent_go_on(&urgent);
		assert_int_equal(sigqueue(getpid(), URGENT_SIGNAL, (union sigval){ .sival_ptr = &urgent }),
				 0);
		assert_int_equal(sigqueue(getpid(), URGENT_SIGNAL, (union sigval){ .sival_ptr = &urgent }),
				 0);
		assert_true(urgent.begun);
	}
	urgent_close(&urgent);
}

static void who_goes_on_rests_as_often(void **state)
{
	(void)state;
	kernel.allows_policy = true;
	urgent_open(&urgent);
	urgent_go_on(&urgent);
	urgent_begin(&urgent);
	for (size_t i = 1; i <= 2 * REST_AFTER; i++) {
		urgent_go_on(&urgent);
		assert_int_equal(kernel.policy, URGENT_POLICY);
		assert_int_equal(kernel.sleeps, i / REST_AFTER);
	}
	urgent_close(&urgent);
}

static void it_may_be_allowed_nothing(void **state)
{
	static const int real_time[] = { SCHED_FIFO, SCHED_RR, -1 };

	(void)state;
	/* No better nice value than it has. */
	for (rlim_t limit = 0; limit <= 20; limit += 20) {
		kernel.rlimit_nice = limit;
		urgent_open(&urgent);
		assert_int_equal(urgent.means, URGENT_NOT_ALLOWED);
		urgent_begin(&urgent);
		assert_false(urgent.begun);
		assert_int_equal(kernel.nice, 0);
		urgent_close(&urgent);
	}
	kernel.knows_limits = false;
	urgent_open(&urgent);
	assert_int_equal(urgent.means, URGENT_NOT_ALLOWED);
	kernel.knows_limits = true;
	kernel.policy = SCHED_IDLE;
	urgent_open(&urgent);
	assert_int_equal(urgent.means, URGENT_NOT_ALLOWED);
	/* A real-time policy is the user's. */
	kernel.allows_policy = true;
	for (size_t i = 0; i < sizeof(real_time) / sizeof(real_time[0]); i++) {
		kernel.policy = real_time[i];
		urgent_open(&urgent);
		assert_int_equal(urgent.means, URGENT_NOT_ALLOWED);
		urgent_begin(&urgent);
		urgent_close(&urgent);
		assert_int_equal(kernel.policy, real_time[i]);
	}
	assert_int_equal(kernel.limits_set, 0);
	kernel.policy = SCHED_IDLE;
	urgent_open(&urgent);
	assert_int_equal(urgent.means, URGENT_BY_POLICY);
	urgent_close(&urgent);
	assert_int_equal(kernel.policy, SCHED_IDLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(for_long_holds_the_nice_value_serves_even_where_the_policy_is_allowed,
				       begin),
		cmocka_unit_test_setup(who_goes_on_rests_as_often, begin),
		cmocka_unit_test_setup(who_goes_on_is_urgent_until_the_work_is_long, begin),
		cmocka_unit_test_setup(work_in_pieces_is_as_long, begin),
		cmocka_unit_test_setup(no_hold_is_too_long, begin),
		cmocka_unit_test_setup(only_its_own_timer_ends_it, begin),
		cmocka_unit_test_setup(by_policy_a_better_nice_value_is_kept_throughout, begin),
		cmocka_unit_test_setup(the_users_nice_value_and_limit_stay, begin),
		cmocka_unit_test_setup(it_rests_once_in_many_holds, begin),
		cmocka_unit_test_setup(else_the_best_nice_value_is_taken_for_a_hold, begin),
		cmocka_unit_test_setup(it_may_be_allowed_nothing, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
