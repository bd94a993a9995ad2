/* SPDX-License-Identifier: MIT */
/* Which threads have a CPU, by counts of the kernel that are made up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/linux/threads/on_cpu.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(thread_count_switches);
INSTEAD_OF(thread_is_running);
INSTEAD_OF(own_turn_began_at);

enum { LEFT_AT = 12345 };

static struct {
	int error;      /* of the count */
	uint64_t count; /* how often the thread left a CPU */
	bool is_running;
	uint64_t turn_began_at;
	unsigned int looks; /* at the count */
} kernel;

static struct thread thread;
static struct own_turn turn;

int __wrap_thread_count_switches(const struct threads *threads, struct thread *of,
				 struct switches *ret_switches)
{
	assert_ptr_equal(threads, &kernel);
	assert_ptr_equal(of, &thread);
	kernel.looks++;
	if (kernel.error)
		return kernel.error;
	*ret_switches = (struct switches){ .count = kernel.count, .left_at = LEFT_AT };
	return 0;
}

bool __wrap_thread_is_running(struct threads *threads, struct thread *of)
{
	assert_ptr_equal(threads, &kernel);
	assert_ptr_equal(of, &thread);
	return kernel.is_running;
}

bool __wrap_own_turn_began_at(struct own_turn *of, uint64_t left_at)
{
	assert_ptr_equal(of, &turn);
	assert_int_equal(left_at, LEFT_AT);
	return kernel.turn_began_at == left_at;
}

static enum presence look(uint64_t runs, uint64_t count, bool is_running)
{
	thread.runs = runs;
	kernel.count = count;
	kernel.is_running = is_running;
	return on_cpu_look((struct threads *)&kernel, &thread, &turn);
}

static int begin(void **state)
{
	(void)state;
	kernel.error = 0;
	kernel.turn_began_at = 0;
	kernel.looks = 0;
	thread = (struct thread){ .tid = 1 };
	return 0;
}

static void who_has_left_a_cpu_less_often_than_got_one_has_one(void **state)
{
	(void)state;
	assert_int_equal(look(7, 6, true), PRESENCE_ON_CPU);
	assert_int_equal(look(7, 7, true), PRESENCE_OFF_CPU);
	assert_int_equal(look(8, 8, false), PRESENCE_OFF_CPU);
	assert_int_equal(look(9, 8, true), PRESENCE_ON_CPU);
	/* The first one that it ever got. */
	assert_int_equal(look(1, 0, true), PRESENCE_ON_CPU);
}

static void who_left_it_when_ljspy_came_was_put_off(void **state)
{
	(void)state;
	kernel.turn_began_at = LEFT_AT;
	assert_int_equal(look(7, 7, true), PRESENCE_PUT_OFF);
	/* Again, as it is no thread without a CPU. */
	assert_int_equal(look(7, 7, true), PRESENCE_PUT_OFF);
	/* It went to sleep just then. */
	assert_int_equal(look(7, 7, false), PRESENCE_OFF_CPU);
	kernel.turn_began_at = LEFT_AT + 1;
	assert_int_equal(look(8, 8, true), PRESENCE_OFF_CPU);
}

static void who_has_got_none_since_needs_no_other_look(void **state)
{
	(void)state;
	assert_int_equal(look(7, 7, false), PRESENCE_OFF_CPU);
	assert_int_equal(thread.runs_left, 7);
	assert_int_equal(kernel.looks, 1);
	kernel.turn_began_at = LEFT_AT;
	assert_int_equal(look(7, 7, true), PRESENCE_OFF_CPU);
	assert_int_equal(kernel.looks, 1);
	assert_int_equal(look(8, 7, true), PRESENCE_ON_CPU);
	assert_int_equal(kernel.looks, 2);
	assert_int_equal(thread.runs_left, 7);
}

static void where_the_kernel_does_not_count_who_is_awake_may_have_one(void **state)
{
	(void)state;
	assert_int_equal(look(0, 0, true), PRESENCE_AWAKE);
	assert_int_equal(look(0, 0, false), PRESENCE_OFF_CPU);
	assert_int_equal(kernel.looks, 0);
	kernel.error = -ESRCH;
	assert_int_equal(look(7, 6, true), PRESENCE_AWAKE);
	assert_int_equal(look(7, 6, false), PRESENCE_OFF_CPU);
	/* That is no reason not to look again. */
	assert_int_equal(thread.runs_left, 0);
	assert_int_equal(kernel.looks, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(who_has_left_a_cpu_less_often_than_got_one_has_one, begin),
		cmocka_unit_test_setup(who_left_it_when_ljspy_came_was_put_off, begin),
		cmocka_unit_test_setup(who_has_got_none_since_needs_no_other_look, begin),
		cmocka_unit_test_setup(where_the_kernel_does_not_count_who_is_awake_may_have_one, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
