/* SPDX-License-Identifier: MIT */
/* A thread that waits for the CPU that it is bound to, in vain. Threads and CPUs are made up. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "src/apart/stranded.h"
#include "src/linux/proc/proc_text.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(sched_getaffinity);
INSTEAD_OF(sched_setaffinity);
INSTEAD_OF(proc_text_read);

enum { TID = 4711, CALLS = 9, LOOK_NS = 20 * 1000 * 1000 };

/* Sets of CPUs, by bit. */
static struct {
	unsigned long own, theirs;
	char state;
	uint64_t cpu_ns;
	int error;
} machine;

static struct stranded stranded;
static uint64_t now_ns;

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret_set)
{
	const unsigned long set = pid ? machine.theirs : machine.own;

	assert_true(pid == 0 || pid == TID);
	assert_int_equal(size, sizeof(*ret_set));
	CPU_ZERO(ret_set);
	for (size_t cpu = 0; cpu < 8; cpu++)
		if (set >> cpu & 1)
			CPU_SET(cpu, ret_set);
	errno = pid ? machine.error : 0;
	return errno ? -1 : 0;
}

int __wrap_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	assert_int_equal(pid, TID);
	assert_int_equal(size, sizeof(*set));
	machine.theirs = 0;
	for (size_t cpu = 0; cpu < 8; cpu++)
		machine.theirs |= (unsigned long)(CPU_ISSET(cpu, set) != 0) << cpu;
	return 0;
}

ssize_t __wrap_proc_text_read(pid_t pid, const char *name, char *text, size_t size)
{
	assert_int_equal(pid, TID);
	assert_string_equal(name, "status");
	return snprintf(text, size,
			"Name:\tljspy-engine\nState:\t%c (state)\n"
			"voluntary_ctxt_switches:\t20\nnonvoluntary_ctxt_switches:\t7\n",
			machine.state);
}

/* After how many calls it is freed; 0: it is not. */
static unsigned int calls_until_freed(void)
{
	for (unsigned int call = 1; call <= CALLS; call++) {
		stranded_free(&stranded, TID, machine.cpu_ns, now_ns += LOOK_NS);
		if (machine.theirs == machine.own)
			return call;
	}
	return 0;
}

static int begin(void **state)
{
	(void)state;
	machine = (__typeof__(machine)){ .own = 0x7, .theirs = 0x4, .state = 'R', .cpu_ns = 20 };
	stranded = (struct stranded){ 0 };
	return 0;
}

static void who_waits_on_and_on_is_freed(void **state)
{
	(void)state;
	assert_int_equal(calls_until_freed(), 4);
	assert_int_equal(machine.theirs, 0x7);
	/* What was is over. */
	stranded_free(&stranded, TID, machine.cpu_ns, now_ns += LOOK_NS);
	assert_int_equal(stranded.since_ns, 0);
	machine.theirs = 0x3;
	assert_int_equal(calls_until_freed(), 3);
}

static void who_had_its_cpu_meanwhile_is_not(void **state)
{
	(void)state;
	for (int call = 0; call < CALLS; call++) {
		stranded_free(&stranded, TID, machine.cpu_ns, now_ns += LOOK_NS);
		machine.cpu_ns++;
	}
	assert_int_equal(machine.theirs, 0x4);
	/* Nor who is asleep, or has slept. */
	for (int call = 0; call < CALLS; call++) {
		machine.state = call % 3 == 2 ? 'S' : 'R';
		stranded_free(&stranded, TID, machine.cpu_ns, now_ns += LOOK_NS);
	}
	assert_int_equal(machine.theirs, 0x4);
	machine.state = 'R';
	assert_int_equal(calls_until_freed(), 3);
}

static void who_may_run_anywhere_waits_like_all_others(void **state)
{
	(void)state;
	machine.theirs = 0x7;
	stranded_free(&stranded, TID, machine.cpu_ns, now_ns += LOOK_NS);
	assert_int_equal(stranded.since_ns, 0);
	/* Nor is there anywhere else to go. */
	machine.own = machine.theirs = 0x4;
	stranded_free(&stranded, TID, machine.cpu_ns, now_ns += LOOK_NS);
	assert_int_equal(stranded.since_ns, 0);
}

static void one_that_is_not_there_is_left_alone(void **state)
{
	(void)state;
	stranded_free(&stranded, TID, machine.cpu_ns, now_ns += LOOK_NS);
	stranded_free(&stranded, 0, machine.cpu_ns, now_ns += LOOK_NS);
	assert_int_equal(stranded.since_ns, 0);
	machine.error = ESRCH;
	assert_int_equal(calls_until_freed(), 0);
	assert_int_equal(stranded.since_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(who_waits_on_and_on_is_freed, begin),
		cmocka_unit_test_setup(who_had_its_cpu_meanwhile_is_not, begin),
		cmocka_unit_test_setup(who_may_run_anywhere_waits_like_all_others, begin),
		cmocka_unit_test_setup(one_that_is_not_there_is_left_alone, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
