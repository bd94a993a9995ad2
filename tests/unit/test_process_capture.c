/* SPDX-License-Identifier: MIT */
/* How often a thread is copied for one sample, and which native stack is told to be its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/inspect/lua_process_parts.h"
#include "src/linux/tracer/thread_registers.h"
#include "tests/unit/instead_of.h"

enum {
	PID = 77,
	OTHER = 78, /* a thread whose stack the kernel did not map */
	STACK = 0x7000000,
	STACK_END = 0x7021000,
	MAPPED = 0x6000000, /* the other stack lies here, and what is beyond its end */
	OWN_END = 0x6008000,
	MAPPED_END = 0x6010000,
	ELSEWHERE = 0x5000800,
	CAPTURES_AT_MOST = 3,
};

static struct lua_process process;
static struct capture_hints hints;
static unsigned int captures, states_left;

INSTEAD_OF(capture_thread);
void __wrap_capture_thread(struct capture *capture, const struct capture_process *of,
			   const struct registers *registers, struct capture_hints *of_thread)
{
	assert_ptr_equal(capture, &process.capture);
	assert_ptr_equal(of->snapshot, process.snapshot);
	assert_non_null(registers);
	assert_ptr_equal(of_thread, &hints);
	captures++;
}

INSTEAD_OF(process_take_up_running);
bool __wrap_process_take_up_running(struct lua_process *of)
{
	assert_ptr_equal(of, &process);
	return states_left && states_left--;
}

INSTEAD_OF(own_stack_address);
uint64_t __wrap_own_stack_address(pid_t tid)
{
	assert_int_equal(tid, OTHER);
	return OWN_END;
}

static int begin(void **state)
{
	char text[512];
	int length = snprintf(text, sizeof(text),
			      "5000000-5001000 rw-p 00000000 00:00 0\n"
			      "%x-%x rw-p 00000000 00:00 0\n"
			      "%x-%x rw-p 00000000 00:00 0   [stack]\n",
			      MAPPED, MAPPED_END, STACK, STACK_END);

	(void)state;
	process = (struct lua_process){ .pid = PID, .snapshot = snapshot_new(NULL), .maps = maps_new(PID) };
	assert_true(process.snapshot && process.maps);
	assert_int_equal(maps_parse(process.maps, text, (size_t)length), 0);
	captures = states_left = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	maps_free(process.maps);
	snapshot_free(process.snapshot);
	return 0;
}

static void capture(pid_t tid, uint64_t sp)
{
	const struct registers registers = { .sp = sp };

	hints = (struct capture_hints){ .tid = tid };
	captures = 0;
	lua_process_capture(&process, &registers, &hints);
}

/* One state within another may lead to the next. */
static void a_thread_is_copied_again_while_states_become_known(void **state)
{
	(void)state;
	for (unsigned int states = 0; states < 2 * CAPTURES_AT_MOST; states++) {
		states_left = states;
		capture(PID, STACK_END - 8);
		assert_int_equal(captures, states < CAPTURES_AT_MOST ? states + 1 : CAPTURES_AT_MOST);
	}
	/* A core file never changes. */
	process.core = (struct core_file *)&process;
	states_left = 1;
	capture(PID, STACK_END - 8);
	assert_int_equal(captures, 1);
}

static void assert_own(uint64_t from, uint64_t to)
{
	assert_int_equal(hints.own_stack.address, to ? from : 0);
	assert_int_equal(hints.own_stack.length, to ? to - from : 0);
}

static void a_thread_that_runs_elsewhere_has_its_own_stack_told(void **state)
{
	(void)state;
	capture(PID, ELSEWHERE);
	assert_own(STACK, STACK_END);
	capture(PID, STACK);
	assert_own(0, 0);
	capture(PID, STACK_END - 8);
	assert_own(0, 0);
	capture(PID, STACK_END);
	assert_own(STACK, STACK_END);
	/* What its mapping has beyond its end is not of it. */
	capture(OTHER, ELSEWHERE);
	assert_own(MAPPED, OWN_END);
	capture(OTHER, MAPPED);
	assert_own(0, 0);
	capture(OTHER, OWN_END + 8);
	assert_own(MAPPED, OWN_END);
	/* Nobody knows of which thread these registers are. */
	capture(0, ELSEWHERE);
	assert_own(0, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_thread_is_copied_again_while_states_become_known),
		TEST(a_thread_that_runs_elsewhere_has_its_own_stack_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
