/* SPDX-License-Identifier: MIT */
/* Who wakes the watch: a worker that does not come by, and nobody else. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/apart/apart_state.h"
#include "src/apart/thread_status.h"
#include "src/linux/clocks/clock.h"
#include "src/program/wake_signal.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(timer_create);

enum { PAUSE_NS = ABSENT_NS / 5, PAUSES = 60, MOMENT_NS = ABSENT_NS / 4 };

static const uint64_t some_ns = UINT64_C(1000) * NS_PER_SECOND;

static bool has_no_timers;
static struct absence absence;
static sem_t watch;

int __wrap_timer_create(clockid_t clock, struct sigevent *event, timer_t *ret_timer)
{
	if (!has_no_timers)
		return __real_timer_create(clock, event, ret_timer);
	errno = EAGAIN;
	return -1;
}

static void pause_for(long ns)
{
	struct timespec left = { .tv_nsec = ns };

	while (nanosleep(&left, &left))
		;
}

static int begin(void **state)
{
	(void)state;
	absence = (struct absence){ .has_alarm = false };
	sem_init(&watch, 0, 0);
	absence_open(&absence, &watch);
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (absence.has_alarm)
		timer_delete(absence.alarm);
	sem_destroy(&watch);
	return 0;
}

static void a_worker_that_never_came_is_absent(void **state)
{
	(void)state;
	assert_true(absence_lasts(&absence, some_ns));
	assert_int_equal(sem_trywait(&watch), -1);
}

static void an_absence_lasts_until_the_worker_comes_by_and_begins_again(void **state)
{
	(void)state;
	assert_true(absence_end(&absence, some_ns));
	assert_false(absence_lasts(&absence, some_ns));
	assert_false(absence_lasts(&absence, some_ns + ABSENT_NS - 1));
	assert_true(absence_lasts(&absence, some_ns + ABSENT_NS));
	assert_true(absence_end(&absence, some_ns + ABSENT_NS));
	assert_false(absence_lasts(&absence, some_ns + 2 * ABSENT_NS - 1));
	/* The watch may have asked for the time before. */
	assert_false(absence_lasts(&absence, some_ns));
}

static void a_worker_that_came_a_moment_ago_need_not_come_again(void **state)
{
	(void)state;
	assert_true(absence_end(&absence, some_ns));
	assert_false(absence_end(&absence, some_ns + MOMENT_NS - 1));
	assert_true(absence_lasts(&absence, some_ns + ABSENT_NS));
	assert_true(absence_end(&absence, some_ns + MOMENT_NS));
	assert_false(absence_lasts(&absence, some_ns + ABSENT_NS));
}

static void an_absence_wakes_the_watch_once(void **state)
{
	(void)state;
	assert_true(absence_end(&absence, clock_now_ns(CLOCK_MONOTONIC)));
	while (sem_wait(&watch))
		assert_int_equal(errno, EINTR);
	assert_true(absence_lasts(&absence, clock_now_ns(CLOCK_MONOTONIC)));
	pause_for(3 * ABSENT_NS);
	assert_int_equal(sem_trywait(&watch), -1);
}

/* Where others want the CPU, a pause may itself be an absence. */
static void a_worker_that_comes_by_does_not_wake_the_watch(void **state)
{
	uint64_t came_ns = clock_now_ns(CLOCK_MONOTONIC);
	int absences = 0, posted;

	(void)state;
	for (int i = 0; i < PAUSES; i++) {
		uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

		if (!absence_end(&absence, now))
			continue;
		absences += clock_now_ns(CLOCK_MONOTONIC) - came_ns >= ABSENT_NS;
		came_ns = now;
		pause_for(PAUSE_NS + MOMENT_NS);
	}
	absences += clock_now_ns(CLOCK_MONOTONIC) - came_ns >= ABSENT_NS;
	assert_int_equal(sem_getvalue(&watch, &posted), 0);
	assert_true(posted <= absences);
}

static void a_signal_from_elsewhere_does_not_wake_the_watch(void **state)
{
	(void)state;
	assert_int_equal(raise(ABSENCE_SIGNAL), 0);
	assert_int_equal(sem_trywait(&watch), -1);
}

static int begin_without_timers(void **state)
{
	has_no_timers = true;
	begin(state);
	has_no_timers = false;
	return 0;
}

/* Nothing would wake the watch then. */
static void without_a_timer_the_worker_is_always_absent(void **state)
{
	(void)state;
	assert_false(absence_end(&absence, some_ns));
	assert_true(absence_lasts(&absence, some_ns));
}

/*---- In an engine ----*/

struct told {
	bool has_come, comes_for_long;
	uint64_t wakeups, absences; /* of the watch, and for how many of these the worker was absent */
};

static struct told told;

static uint64_t count_sleeps(pid_t tid)
{
	static char text[THREAD_STATUS_SIZE];
	uint64_t count = 0;

	/* Where it runs just now, it wakes up. */
	while (!thread_status_is(tid, 'S', text, &count))
		pause_for(PAUSE_NS / 4);
	return count;
}

static void come_by_often(struct apart *apart, void *context)
{
	struct told result = { .wakeups = 0 };
	uint64_t before;

	(void)context;
	/* The watch would wake up meanwhile: only one brief wait after another counts. */
	apart_come_by(apart, PAUSE_NS);
	apart_come_by(apart, ABSENT_NS + 1);
	apart_come_by(apart, PAUSE_NS);
	result.comes_for_long = apart->absence.came_ns != 0;
	do {
		pause_for(PAUSE_NS);
		apart_come_by(apart, PAUSE_NS);
	} while (absence_lasts(&apart->absence, clock_now_ns(CLOCK_MONOTONIC)));
	result.has_come = true;
	pause_for(ABSENT_NS / 2); /* the watch may have napped by itself until now */
	apart_come_by(apart, PAUSE_NS);
	before = count_sleeps(getpid());
	for (int i = 0; i < 4 * PAUSES; i++) {
		const uint64_t now = clock_now_ns(CLOCK_MONOTONIC), came_ns = apart->absence.came_ns;

		if (absence_lasts(&apart->absence, now))
			result.absences += 2 + (now - came_ns) / ABSENT_NS;
		apart_come_by(apart, PAUSE_NS);
		pause_for(PAUSE_NS);
	}
	result.wakeups = count_sleeps(getpid()) - before;
	apart_publish(apart, &result);
}

static void take_result(struct apart *apart, void *context)
{
	(void)context;
	apart_results(apart, &told);
}

static void the_watch_of_an_engine_sleeps_while_its_worker_comes_by(void **state)
{
	const struct apart_options options = {
		.work = come_by_often,
		.update = take_result,
		.results_size = sizeof(told),
	};
	/* It looks for itself now and then. */
	const uint64_t others = 4 * PAUSES * (uint64_t)PAUSE_NS / (8 * ABSENT_NS);
	struct apart_outcome outcome;
	sigset_t signals;

	(void)state;
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, WAKE_SIGNAL);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	assert_int_equal(apart_run(&options, &outcome), 0);
	assert_int_equal(outcome.end, APART_CONCLUDED);
	assert_true(told.has_come);
	assert_false(told.comes_for_long);
	assert_in_range(told.wakeups, 0, others + told.absences);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_worker_that_never_came_is_absent, begin, end),
		cmocka_unit_test_setup_teardown(an_absence_lasts_until_the_worker_comes_by_and_begins_again,
						begin, end),
		cmocka_unit_test_setup_teardown(a_worker_that_came_a_moment_ago_need_not_come_again, begin,
						end),
		cmocka_unit_test_setup_teardown(an_absence_wakes_the_watch_once, begin, end),
		cmocka_unit_test_setup_teardown(a_worker_that_comes_by_does_not_wake_the_watch, begin, end),
		cmocka_unit_test_setup_teardown(a_signal_from_elsewhere_does_not_wake_the_watch, begin, end),
		cmocka_unit_test_setup_teardown(without_a_timer_the_worker_is_always_absent,
						begin_without_timers, end),
		cmocka_unit_test(the_watch_of_an_engine_sleeps_while_its_worker_comes_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
