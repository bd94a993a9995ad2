/* SPDX-License-Identifier: MIT */
/*
 * Samples of coroutines that have yielded: which of them have one, of which time, and how often they are
 * read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/survey/dump_stacks.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_hold.h"

enum { MS = 1000 * 1000 };

static const struct function places[] = {
	{ .kind = FRAME_LUA, .name = "waits", .file = "@a.lua" },
	{ .kind = FRAME_LUA, .name = "sleeps", .file = "@a.lua" },
};

/* What a reading finds. */
static struct {
	unsigned int count; /* coroutines suspended at the first place */
	uint64_t takes_ns;
	bool is_incomplete;
	int error;
	unsigned int readings;
} found;

INSTEAD_OF(dump_coroutines);
int __wrap_dump_coroutines(struct lua_process *process, struct hold *hold, struct dump_process *report)
{
	struct dump_vm *vm = dump_process_add_vm(report, 1, "luajit");
	struct frame frames[] = { { .function = &places[0] }, { .function = &places[1] } };
	const struct dump_stack stack = { .frames = frames, .count = 2 },
				other = { .frames = frames + 1, .count = 1 };

	(void)process;
	assert_ptr_equal(hold, &held);
	assert_int_equal(report->pid, HELD_PID);
	assert_string_equal(report->name, "worker");
	found.readings++;
	held_now_ns += found.takes_ns;
	for (unsigned int i = 0; i < found.count; i++)
		assert_int_equal(dump_vm_add(vm, COROUTINE_SUSPENDED, "timer", &stack), 0);
	if (found.count)
		assert_int_equal(dump_vm_add(vm, COROUTINE_PARKED, NULL, &other), 0);
	for (enum coroutine_state state = 0; found.count && state < COROUTINE_STATE_COUNT; state++)
		if (state != COROUTINE_SUSPENDED && state != COROUTINE_PARKED)
			assert_int_equal(dump_vm_add(vm, state, NULL, &stack), 0);
	vm->complete = !found.is_incomplete;
	report->holds = held.count;
	report->longest_hold_ns = held.longest_ns;
	dump_process_sort(report);
	return found.error;
}

static int begin(void **state)
{
	(void)state;
	held_begin();
	memset(&found, 0, sizeof(found));
	found.count = 3;
	return 0;
}

static int end(void **state)
{
	(void)state;
	held_end();
	return 0;
}

static void look(void)
{
	held_count = 0;
	target_sample_coroutines(&held_sampler, &held_target);
}

static void coroutines_at_one_place_share_a_sample(void **state)
{
	(void)state;
	look();
	/* Those that have yielded, and no others. */
	assert_int_equal(held_count, 2);
	assert_int_equal(held_samples[0].sample.wall_ns, 3 * HELD_PERIOD_NS);
	assert_ptr_equal(held_samples[0].frames[0].function, &places[0]);
	assert_int_equal(held_samples[0].sample.frame_count, 2);
	assert_string_equal(held_samples[0].phase, "timer");
	assert_int_equal(held_samples[1].sample.wall_ns, HELD_PERIOD_NS);
	assert_ptr_equal(held_samples[1].frames[0].function, &places[1]);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(held_samples[i].sample.thread_state, THREAD_PARKED);
		assert_int_equal(held_samples[i].sample.pid, HELD_PID);
		assert_int_equal(held_samples[i].sample.tid, HELD_PID);
		assert_int_equal(held_samples[i].sample.cpu_ns, 0);
	}
	/* The rate is that of the readings: each place counts as one. */
	assert_int_equal(held_sampler.wall_ns, 2 * HELD_PERIOD_NS);
	assert_ptr_equal(held.go_on, held_may_go_on);
}

static void each_has_waited_since_the_last_reading(void **state)
{
	(void)state;
	look();
	held_now_ns += 30 * MS;
	look();
	assert_int_equal(held_samples[0].sample.wall_ns, 3 * 30 * MS);
	assert_int_equal(held_samples[0].sample.time_ns, held_now_ns);
}

static void reading_takes_a_quarter_of_the_time_at_most(void **state)
{
	(void)state;
	found.takes_ns = 20 * MS;
	look();
	assert_int_equal(found.readings, 1);
	held_now_ns += 3 * 20 * MS - 1;
	look();
	assert_int_equal(found.readings, 1);
	assert_int_equal(held_count, 0);
	held_now_ns++;
	look();
	assert_int_equal(found.readings, 2);
	/* From the end of one reading to the end of the next one. */
	assert_int_equal(held_samples[1].sample.wall_ns, 4 * 20 * MS);
}

static void what_was_not_found_counts_as_missed(void **state)
{
	(void)state;
	look();
	assert_int_equal(held_result.figures.missed_ticks, 0);
	found.is_incomplete = true;
	look();
	assert_int_equal(held_count, 2);
	assert_int_equal(held_result.figures.missed_ticks, 1);
}

static void a_reading_that_fails_has_no_samples(void **state)
{
	(void)state;
	found.error = -1;
	look();
	assert_int_equal(held_count, 0);
	assert_int_equal(held_target.read_last_ns, 0);
	found.error = 0;
	held.has_no_memory = true;
	look();
	assert_int_equal(held_count, 0);
	assert_int_equal(found.readings, 1);
}

static void a_pause_is_that_of_a_hold_that_stopped_a_thread(void **state)
{
	(void)state;
	held_assert_pause(look);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(coroutines_at_one_place_share_a_sample),
		TEST(each_has_waited_since_the_last_reading),
		TEST(reading_takes_a_quarter_of_the_time_at_most),
		TEST(what_was_not_found_counts_as_missed),
		TEST(a_reading_that_fails_has_no_samples),
		TEST(a_pause_is_that_of_a_hold_that_stopped_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
