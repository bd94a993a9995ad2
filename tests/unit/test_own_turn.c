/* SPDX-License-Identifier: MIT */
/* Turns of ljspy's own thread on its CPU. The clocks and the scheduler's counts are made up. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/clocks/own_turn.h"
#include "src/linux/clocks/scheduler.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/open_files.h"

INSTEAD_OF(clock_gettime);
INSTEAD_OF(nanosleep);
INSTEAD_OF(open);
INSTEAD_OF(pread);
INSTEAD_OF(sched_getcpu);
INSTEAD_OF(schedstat_parse);
INSTEAD_OF(sigtimedwait);
INSTEAD_OF(switches_parse);

enum { USED_UP_NS = 50000, BEGINNING_NS = 50000, OVERSLEPT_NS = 2000000, KNOWN_NS = 1000000000 };

/* What ljspy can see of the machine. */
static struct {
	uint64_t cpu_ns, raw_ns, monotonic_ns;
	int cpu;
	struct schedstat schedstat;
	struct switches switches;
	bool has_switches;
	size_t cpu_reads, switches_reads, sleeps;
	bool unreadable, has_no_files;
	/* What happens in a wait. */
	int signal, error;
	uint64_t wait_ns, waited_ns, runs;
} machine;

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now)
{
	const uint64_t now = clock == CLOCK_THREAD_CPUTIME_ID ? machine.cpu_ns
			     : clock == CLOCK_MONOTONIC_RAW   ? machine.raw_ns
							      : machine.monotonic_ns;

	machine.cpu_reads += clock == CLOCK_THREAD_CPUTIME_ID;
	*ret_now = time_of(now);
	return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)time;
	(void)left;
	machine.sleeps++;
	return 0;
}

int __wrap_open(const char *path, int flags, ...)
{
	return machine.has_no_files ? -1 : __real_open(path, flags);
}

ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset)
{
	assert_int_equal(offset, 0);
	memset(bytes, 'x', size);
	return machine.unreadable ? -1 : __real_pread(fd, bytes, size, offset);
}

int __wrap_sched_getcpu(void)
{
	return machine.cpu;
}

struct schedstat __wrap_schedstat_parse(const char *text)
{
	/* Three numbers, and nothing behind them. */
	assert_int_equal(strspn(text, "0123456789 \n"), strlen(text));
	assert_int_equal(text[strlen(text) - 1], '\n');
	return machine.schedstat;
}

bool __wrap_switches_parse(const char *text, struct switches *ret_switches)
{
	(void)text;
	machine.switches_reads++;
	*ret_switches = machine.switches;
	return machine.has_switches;
}

int __wrap_sigtimedwait(const sigset_t *signals, siginfo_t *ret_info, const struct timespec *timeout)
{
	(void)signals;
	(void)ret_info;
	(void)timeout;
	machine.monotonic_ns += machine.wait_ns;
	machine.schedstat.waited_ns += machine.waited_ns;
	machine.schedstat.runs += machine.runs;
	errno = machine.error;
	return machine.signal;
}

static struct own_turn turn;

static int begin(void **state)
{
	(void)state;
	memset(&machine, 0, sizeof(machine));
	machine.cpu_ns = 1000000;
	machine.raw_ns = 5000000000;
	machine.monotonic_ns = 7000000000;
	machine.cpu = 1;
	machine.schedstat = (struct schedstat){ .waited_ns = 400, .runs = 9 };
	machine.has_switches = true;
	machine.signal = 10;
	own_turn_open(&turn);
	if (turn.schedstat_fd < 0 || turn.sched_fd < 0) {
		own_turn_close(&turn);
		return -1;
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	own_turn_close(&turn);
	return 0;
}

/* Wait for up to two seconds and three nanoseconds. */
static int wait_once(uint64_t wait_ns, uint64_t waited_ns, uint64_t runs)
{
	const struct timespec timeout = { .tv_sec = 2, .tv_nsec = 3 };
	siginfo_t info;
	sigset_t none;

	sigemptyset(&none);
	machine.wait_ns = wait_ns;
	machine.waited_ns = waited_ns;
	machine.runs = runs;
	return own_turn_wait(&turn, &none, &info, &timeout);
}

static void a_turn_knows_how_long_it_waited_for_a_cpu(void **state)
{
	(void)state;
	assert_int_equal(wait_once(1000, 250, 1), 10);
	assert_int_equal(turn.late_ns, 250);
	assert_int_equal(turn.woken_ns, 7000000000 + 1000 - 250);
	/* From then on. */
	assert_int_equal(own_turn_waited(&turn), 0);
	machine.schedstat.waited_ns += 70;
	assert_int_equal(own_turn_waited(&turn), 70);
	machine.schedstat.waited_ns = 0;
	assert_int_equal(own_turn_waited(&turn), 0);
}

/* The time that it asked for may begin before it sleeps, while it waits for a CPU. */
static void who_wakes_in_time_is_not_late(void **state)
{
	enum { ASKED_NS = 2000000003 };

	(void)state;
	machine.signal = -1;
	machine.error = EAGAIN;
	wait_once(ASKED_NS + 30, 250, 1);
	assert_int_equal(turn.late_ns, 30);
	assert_int_equal(turn.woken_ns, 7000000000 + ASKED_NS);
	wait_once(ASKED_NS + 251, 250, 1);
	assert_int_equal(turn.late_ns, 250);
	wait_once(ASKED_NS, 250, 1);
	assert_int_equal(turn.late_ns, 0);
}

static void without_a_sleep_the_turn_goes_on(void **state)
{
	(void)state;
	machine.cpu_ns += USED_UP_NS + 1;
	assert_true(own_turn_is_used_up(&turn));
	wait_once(0, 0, 0);
	assert_true(own_turn_is_used_up(&turn));
	assert_int_equal(turn.woken_ns, 0);
	wait_once(0, 0, 1);
	assert_false(own_turn_is_used_up(&turn));
	assert_true(turn.woken_ns > 0);
	machine.cpu_ns += USED_UP_NS;
	assert_false(own_turn_is_used_up(&turn));
	machine.cpu_ns++;
	assert_true(own_turn_is_used_up(&turn));
	own_turn_renew(&turn);
	assert_int_equal(machine.sleeps, 1);
	assert_false(own_turn_is_used_up(&turn));
	/* Where the kernel does not count, each wait may have been a sleep. */
	machine.schedstat.runs = 0;
	turn.runs = 0;
	machine.cpu_ns += USED_UP_NS + 1;
	wait_once(0, 0, 0);
	assert_false(own_turn_is_used_up(&turn));
}

static void who_was_stopped_does_not_know_when_it_was_woken(void **state)
{
	enum { ASKED_NS = 2000000003 };

	(void)state;
	wait_once((uint64_t)ASKED_NS + 100 + OVERSLEPT_NS, 100, 1);
	assert_true(turn.woken_ns > 0);
	wait_once((uint64_t)ASKED_NS + 101 + OVERSLEPT_NS, 100, 1);
	assert_int_equal(turn.woken_ns, 0);
	wait_once(10, 0, 1);
	assert_true(turn.woken_ns > 0);
	machine.signal = -1;
	machine.error = EAGAIN;
	assert_int_equal(wait_once(10, 0, 1), -1);
	assert_int_equal(errno, EAGAIN);
	assert_true(turn.woken_ns > 0);
	machine.error = EINTR;
	assert_int_equal(wait_once(10, 0, 1), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(turn.woken_ns, 0);
}

/*
 * The scheduler's clock is at 900,000,000 when the turn begins, and has gone on by the CPU time since then.
 */
static void begin_by_scheduler(uint64_t cpu_ns)
{
	machine.switches = (struct switches){ .left_at = 900000000 + cpu_ns,
					      .cpu_ns = machine.cpu_ns + cpu_ns };
}

static void a_turn_began_just_after_a_thread_left_the_cpu(void **state)
{
	enum { BEGAN_AT = 900000000 };

	(void)state;
	begin_by_scheduler(30);
	assert_false(own_turn_began_at(&turn, 0));
	assert_int_equal(machine.switches_reads, 0);
	assert_true(own_turn_began_at(&turn, BEGAN_AT));
	assert_true(own_turn_began_at(&turn, BEGAN_AT - BEGINNING_NS + 1));
	assert_false(own_turn_began_at(&turn, BEGAN_AT - BEGINNING_NS));
	assert_false(own_turn_began_at(&turn, BEGAN_AT + 1));
	/* That is read once a turn. */
	assert_int_equal(machine.switches_reads, 1);
	own_turn_renew(&turn);
	assert_false(own_turn_began_at(&turn, BEGAN_AT + 1));
	assert_int_equal(machine.switches_reads, 2);
}

/* How far that clock is ahead is known for a second, on one CPU; only its yes is believed. */
static void a_beginning_may_be_guessed(void **state)
{
	enum { BEGAN_AT = 900000000 };

	(void)state;
	begin_by_scheduler(0);
	assert_true(own_turn_began_at(&turn, BEGAN_AT));
	machine.raw_ns += KNOWN_NS - 1;
	own_turn_renew(&turn);
	assert_true(own_turn_began_at(&turn, (uint64_t)BEGAN_AT + KNOWN_NS - 1));
	assert_int_equal(machine.switches_reads, 1);
	assert_false(own_turn_began_at(&turn, (uint64_t)BEGAN_AT + KNOWN_NS));
	assert_int_equal(machine.switches_reads, 2);
	/* By what was read just now, for one second more. */
	machine.raw_ns += KNOWN_NS;
	own_turn_renew(&turn);
	begin_by_scheduler(0);
	assert_true(own_turn_began_at(&turn, BEGAN_AT));
	assert_int_equal(machine.switches_reads, 3);
	/* Not on another CPU. */
	machine.cpu = 2;
	own_turn_renew(&turn);
	assert_true(own_turn_began_at(&turn, BEGAN_AT));
	assert_int_equal(machine.switches_reads, 4);
}

static void who_changes_cpus_cannot_guess(void **state)
{
	enum { BEGAN_AT = 900000000 };

	(void)state;
	begin_by_scheduler(0);
	machine.cpu = 0; /* it began on another one */
	assert_true(own_turn_began_at(&turn, BEGAN_AT));
	machine.cpu = 1;
	own_turn_renew(&turn);
	assert_true(own_turn_began_at(&turn, BEGAN_AT));
	assert_int_equal(machine.switches_reads, 2);
	/* Nor without the scheduler's word. */
	turn.ahead.until = 0;
	machine.has_switches = false;
	own_turn_renew(&turn);
	assert_false(own_turn_began_at(&turn, BEGAN_AT));
	/* Not at the beginning of all time, either. */
	assert_false(own_turn_began_at(&turn, 1));
}

/* Let so many turns of this length pass, with so much CPU time in each. */
static void use(size_t turns, uint64_t length_ns, uint64_t cpu_ns)
{
	for (size_t i = 0; i < turns; i++) {
		machine.cpu_ns += cpu_ns;
		machine.raw_ns += length_ns;
		wait_once(0, 0, i % 2); /* sleeps or not */
		own_turn_is_modest(&turn);
	}
}

static void who_uses_an_eighth_of_a_cpu_or_less_is_modest(void **state)
{
	(void)state;
	assert_true(own_turn_is_modest(&turn));
	use(1000, 10000000, 1250000);
	assert_true(own_turn_is_modest(&turn));
	use(1000, 10000000, 1300000);
	assert_false(own_turn_is_modest(&turn));
	use(1000, 10000000, 1200000);
	assert_true(own_turn_is_modest(&turn));
	/* It may use 20 ms at once. */
	use(1000, 10000000, 0);
	use(1, 19900000, 19900000);
	assert_true(own_turn_is_modest(&turn));
	use(1, 3000000, 3000000);
	assert_false(own_turn_is_modest(&turn));
	/* However much it was, it is made good after a while. */
	use(1, 5000000000, 5000000000);
	use(1, 159000000, 0);
	assert_false(own_turn_is_modest(&turn));
	use(1, 2000000, 0);
	assert_true(own_turn_is_modest(&turn));
	/* A round of work without a wait counts at once. */
	machine.cpu_ns += 21000000;
	machine.raw_ns += 21000000;
	assert_false(own_turn_is_modest(&turn));
}

static void the_cpu_time_used_is_read_once_a_millisecond(void **state)
{
	size_t reads;

	(void)state;
	use(1, 10000000, 20000000);
	reads = machine.cpu_reads;
	assert_true(own_turn_is_modest(&turn));
	machine.cpu_ns += 900000;
	machine.raw_ns += 900000;
	assert_true(own_turn_is_modest(&turn));
	assert_int_equal(machine.cpu_reads, reads);
	/* Nothing of it is forgotten. */
	machine.cpu_ns += 1100000;
	machine.raw_ns += 1100000;
	assert_false(own_turn_is_modest(&turn));
	assert_int_equal(machine.cpu_reads, reads + 1);
}

static void without_its_files_little_is_known(void **state)
{
	(void)state;
	machine.unreadable = true;
	machine.cpu_ns += USED_UP_NS + 1;
	assert_int_equal(wait_once(1000, 250, 1), 10);
	assert_int_equal(turn.late_ns, 0);
	assert_int_equal(turn.woken_ns, 7000000000 + 1000);
	assert_int_equal(own_turn_waited(&turn), 0);
	/* Each wait may have been a sleep. */
	assert_false(own_turn_is_used_up(&turn));
	begin_by_scheduler(0);
	assert_false(own_turn_began_at(&turn, 900000000));
	assert_int_equal(machine.switches_reads, 0);
}

/* A kernel may have neither file. */
static void files_are_closed_that_were_opened(void **state)
{
	const unsigned int files = open_files_count();
	struct own_turn other;

	(void)state;
	own_turn_open(&other);
	assert_int_equal(open_files_count(), files + 2);
	own_turn_close(&other);
	assert_int_equal(open_files_count(), files);
	machine.has_no_files = true;
	own_turn_open(&other);
	machine.has_no_files = false;
	assert_true(other.schedstat_fd < 0 && other.sched_fd < 0);
	assert_int_equal(own_turn_waited(&other), 0);
	own_turn_close(&other);
	assert_int_equal(open_files_count(), files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_turn_knows_how_long_it_waited_for_a_cpu, begin, end),
		cmocka_unit_test_setup_teardown(who_wakes_in_time_is_not_late, begin, end),
		cmocka_unit_test_setup_teardown(without_a_sleep_the_turn_goes_on, begin, end),
		cmocka_unit_test_setup_teardown(who_was_stopped_does_not_know_when_it_was_woken, begin, end),
		cmocka_unit_test_setup_teardown(a_turn_began_just_after_a_thread_left_the_cpu, begin, end),
		cmocka_unit_test_setup_teardown(a_beginning_may_be_guessed, begin, end),
		cmocka_unit_test_setup_teardown(who_changes_cpus_cannot_guess, begin, end),
		cmocka_unit_test_setup_teardown(who_uses_an_eighth_of_a_cpu_or_less_is_modest, begin, end),
		cmocka_unit_test_setup_teardown(the_cpu_time_used_is_read_once_a_millisecond, begin, end),
		cmocka_unit_test_setup_teardown(without_its_files_little_is_known, begin, end),
		cmocka_unit_test_setup_teardown(files_are_closed_that_were_opened, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
