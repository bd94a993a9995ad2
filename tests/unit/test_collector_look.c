/* SPDX-License-Identifier: MIT */
/*
 * What a VM has allocated from one sample to the next, in which CPU time, and how long a step of the
 * collector runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "unwind/allocation/allocated.h"
#include "unwind/allocation/collector_look.h"
#include "unwind/lua/luajit.h"

static struct global_state global;
static struct allocation_counters counters;
static bool can_read;

INSTEAD_OF(allocation_counters_read);

bool __wrap_allocation_counters_read(struct memory *memory, const struct global_state *of,
				     struct allocation_counters *ret_counters)
{
	(void)memory;
	assert_ptr_equal(of, &global);
	*ret_counters = counters;
	return can_read;
}

static int begin(void **state)
{
	(void)state;
	global = (struct global_state){ 0 };
	counters = (struct allocation_counters){ .total = 100000,
						 .estimate = 50000,
						 .threshold = 200000,
						 .string_table = 2048,
						 .state = GCSpropagate };
	can_read = true;
	return 0;
}

static struct sample_gc look(uint64_t now_ns, uint64_t cpu_ns, enum gc_phase phase)
{
	struct sample_gc gc = { .phase = phase };

	collector_look_add(NULL, &global, now_ns, cpu_ns, &gc);
	return gc;
}

static void the_first_sample_tells_nothing(void **state)
{
	const struct sample_gc gc = look(1, 700, GC_PHASE_NONE);

	(void)state;
	assert_int_equal(gc.allocated_bytes, 0);
	assert_int_equal(gc.used_ns, 0);
	assert_false(gc.has_marked);
}

static void each_other_tells_what_was_allocated_and_in_which_time(void **state)
{
	struct sample_gc gc;

	(void)state;
	look(1, 700, GC_PHASE_NONE);
	counters.total += 4000;
	gc = look(2, 1700, GC_PHASE_NONE);
	assert_int_equal(gc.allocated_bytes, 4000);
	assert_int_equal(gc.used_ns, 1000);
	counters.total += 50;
	gc = look(3, 1701, GC_PHASE_NONE);
	assert_int_equal(gc.allocated_bytes, 50);
	assert_int_equal(gc.used_ns, 1);
	/* Another thread, which has used less. */
	counters.total += 60;
	gc = look(4, 300, GC_PHASE_NONE);
	assert_int_equal(gc.allocated_bytes, 60);
	assert_int_equal(gc.used_ns, 0);
}

/* gc.estimate is that once a sweep is over. */
static void what_is_left_of_the_heap_is_known_but_while_it_sweeps(void **state)
{
	static const uint8_t states[] = { GCSpause,       GCSpropagate, GCSatomic,
					  GCSsweepstring, GCSsweep,     GCSfinalize };

	(void)state;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		counters.state = states[i];
		assert_int_equal(look(i, i, GC_PHASE_NONE).live_bytes, states[i] < GCSatomic ? 50000 : 0);
	}
	can_read = false;
	counters.state = GCSpause;
	assert_int_equal(look(9, 9, GC_PHASE_NONE).live_bytes, 0);
}

static void what_cannot_be_read_counts_at_the_next_one(void **state)
{
	struct sample_gc gc;

	(void)state;
	look(1, 700, GC_PHASE_NONE);
	counters.total += 10;
	can_read = false;
	gc = look(2, 800, GC_PHASE_NONE);
	assert_int_equal(gc.used_ns, 0);
	can_read = true;
	gc = look(3, 900, GC_PHASE_NONE);
	assert_int_equal(gc.allocated_bytes, 10);
	assert_int_equal(gc.used_ns, 200);
}

/* What a sweep seems to take back is told when more was allocated. */
static void bytes_that_a_step_of_a_sweep_hides_come_later(void **state)
{
	(void)state;
	counters.state = GCSsweep;
	look(1, 0, GC_PHASE_SWEEP);
	counters.total -= 3000;
	assert_int_equal(look(2, 1, GC_PHASE_SWEEP).allocated_bytes, 0);
	counters.total += 500;
	counters.estimate -= 3000; /* at the step's end */
	assert_int_equal(look(3, 2, GC_PHASE_NONE).allocated_bytes, 500);
}

/* Two markings leave the current white as it was; gc.estimate tells. */
static void two_markings_are_noticed(void **state)
{
	struct sample_gc gc;

	(void)state;
	look(1, 0, GC_PHASE_NONE);
	assert_false(look(2, 1, GC_PHASE_NONE).has_marked);
	counters.estimate = 90000;
	gc = look(3, 2, GC_PHASE_NONE);
	assert_true(gc.has_marked);
	assert_int_equal(gc.used_ns, 1);
}

/*
 * Nobody knows how many finalizers there were: the sample with the next marking, which tells as little, has
 * that time.
 */
static void time_with_finalizers_is_told_with_the_next_marking(void **state)
{
	struct sample_gc gc;

	(void)state;
	counters.state = GCSsweep;
	look(1, 0, GC_PHASE_NONE);
	counters.state = GCSfinalize;
	counters.total += 300;
	counters.estimate -= 20000;
	gc = look(2, 10, GC_PHASE_FINALIZE);
	assert_false(gc.has_marked);
	assert_int_equal(gc.allocated_bytes, 0);
	assert_int_equal(gc.used_ns, 0);
	counters.state = GCSpropagate;
	counters.total += 400;
	gc = look(3, 30, GC_PHASE_MARK);
	assert_int_equal(gc.allocated_bytes, 400);
	assert_int_equal(gc.used_ns, 20);
	counters.state = GCSsweep;
	counters.total += 50;
	counters.estimate = counters.total - 50;
	gc = look(4, 35, GC_PHASE_SWEEP);
	assert_true(gc.has_marked);
	assert_int_equal(gc.allocated_bytes, 300 + 50);
	assert_int_equal(gc.used_ns, 10 + 5);
}

static void a_step_lasts_while_the_threshold_stays(void **state)
{
	(void)state;
	assert_int_equal(look(1000, 0, GC_PHASE_MARK).step_ns, 0);
	assert_int_equal(look(1500, 1, GC_PHASE_MARK).step_ns, 500);
	assert_int_equal(look(1700, 2, GC_PHASE_MARK).step_ns, 700);
	counters.threshold += 1024;
	assert_int_equal(look(1900, 3, GC_PHASE_MARK).step_ns, 0);
	assert_int_equal(look(2000, 4, GC_PHASE_MARK).step_ns, 100);
	/* The program ran in between. */
	assert_int_equal(look(2100, 5, GC_PHASE_NONE).step_ns, 0);
	assert_int_equal(look(2200, 6, GC_PHASE_MARK).step_ns, 0);
	/* It allocated more than a step leaves room for. */
	counters.total += 2 * ALLOCATED_FREED_MAX;
	assert_int_equal(look(2300, 7, GC_PHASE_MARK).step_ns, 0);
	/* A finalizer ends it. */
	assert_int_equal(look(2400, 8, GC_PHASE_FINALIZE).step_ns, 0);
	assert_int_equal(look(2500, 9, GC_PHASE_MARK).step_ns, 0);
}

/* Of a program that has stopped the collector: from one marking into the sweep after the next one. */
static void what_was_not_looked_at_ends_a_step(void **state)
{
	enum { MS = 1000 * 1000 };
	uint64_t now_ns = MS, cpu_ns = MS;

	(void)state;
	look(now_ns, cpu_ns, GC_PHASE_MARK);
	for (int i = 1; i <= 5; i++)
		assert_int_equal(look(now_ns += 2 * MS, cpu_ns += 2 * MS, GC_PHASE_MARK).step_ns, 2 * MS * i);
	/* It had no CPU: others had it. */
	assert_int_equal(look(now_ns += 70 * MS, cpu_ns += 2 * MS, GC_PHASE_MARK).step_ns, 80 * MS);
	assert_int_equal(look(now_ns += 8 * MS, cpu_ns += 8 * MS, GC_PHASE_MARK).step_ns, 88 * MS);
	assert_int_equal(look(now_ns += 70 * MS, cpu_ns += 70 * MS, GC_PHASE_MARK).step_ns, 0);
	assert_int_equal(look(now_ns += 2 * MS, cpu_ns += 2 * MS, GC_PHASE_MARK).step_ns, 2 * MS);
	/* With a lower rate, all gaps are as long. */
	for (int i = 0; i < 20; i++)
		look(now_ns += 70 * MS, cpu_ns += 70 * MS, GC_PHASE_MARK);
	assert_true(look(now_ns += 70 * MS, cpu_ns += 70 * MS, GC_PHASE_MARK).step_ns >= 140 * MS);
}

/* Of a step that goes on from a first look, does another one see it, after this CPU time? */
static bool goes_on_after(uint64_t usual_ns, uint64_t used_ns)
{
	begin(NULL);
	look(1000, 0, GC_PHASE_MARK);
	assert_int_equal(look(2000, usual_ns, GC_PHASE_MARK).step_ns, 1000);
	return look(3000, usual_ns + used_ns, GC_PHASE_MARK).step_ns == 2000;
}

static void only_a_long_gap_of_several_looks_ends_a_step(void **state)
{
	enum { MS = 1000 * 1000 };

	(void)state;
	assert_true(goes_on_after(MS, 10 * MS));
	assert_false(goes_on_after(MS, 10 * MS + 1));
	assert_true(goes_on_after(4 * MS, 16 * MS));
	assert_false(goes_on_after(4 * MS, 16 * MS + 1));
}

/* A second look at a step, of which the first one was in this state. */
static bool is_same_step(uint8_t before, uint8_t now, bool has_marked, uint64_t bytes)
{
	struct sample_gc gc = { .phase = GC_PHASE_MARK, .has_marked = has_marked };

	begin(NULL);
	counters.state = before;
	look(1000, 0, GC_PHASE_MARK);
	counters.state = now;
	counters.total += bytes;
	collector_look_add(NULL, &global, 1500, 1, &gc);
	assert_int_equal(gc.has_marked, has_marked);
	return gc.step_ns == 500;
}

static void a_step_marks_once_on_its_way_from_marking_to_sweeping(void **state)
{
	(void)state;
	assert_true(is_same_step(GCSpropagate, GCSpropagate, false, 0));
	assert_true(is_same_step(GCSpropagate, GCSatomic, false, 0));
	assert_false(is_same_step(GCSpropagate, GCSatomic, true, 0));
	assert_true(is_same_step(GCSpropagate, GCSsweep, true, 0));
	assert_true(is_same_step(GCSatomic, GCSsweepstring, true, 0));
	assert_false(is_same_step(GCSatomic, GCSsweepstring, false, 0));
	assert_true(is_same_step(GCSsweepstring, GCSsweep, false, 0));
	assert_false(is_same_step(GCSsweepstring, GCSsweep, true, 0));
	/* It does not go back. */
	assert_false(is_same_step(GCSsweep, GCSsweepstring, false, 0));
	assert_true(is_same_step(GCSpropagate, GCSpropagate, false, ALLOCATED_FREED_MAX));
	assert_false(is_same_step(GCSpropagate, GCSpropagate, false, ALLOCATED_FREED_MAX + 1));
}

/* It freed more than a step hides: its table of strings shrank. */
static void what_is_too_much_for_a_step_is_not_waited_for(void **state)
{
	uint64_t before;

	(void)state;
	counters.state = GCSsweep;
	look(1, 0, GC_PHASE_SWEEP);
	counters.total -= ALLOCATED_FREED_MAX;
	assert_int_equal(look(2, 1, GC_PHASE_SWEEP).allocated_bytes, 0);
	counters.total += 500;
	assert_int_equal(look(3, 2, GC_PHASE_SWEEP).allocated_bytes, 0);
	counters.total -= 501;
	assert_int_equal(look(4, 3, GC_PHASE_SWEEP).allocated_bytes, 0);
	counters.total += 500;
	assert_int_equal(look(5, 4, GC_PHASE_SWEEP).allocated_bytes, 500);
	/* Nor is what a cycle before had hidden. */
	counters.total -= 3000;
	assert_int_equal(look(6, 5, GC_PHASE_SWEEP).allocated_bytes, 0);
	before = counters.total;
	counters.estimate = before + 700;
	counters.total = counters.estimate + 100;
	assert_int_equal(look(7, 6, GC_PHASE_SWEEP).allocated_bytes, counters.total - before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_first_sample_tells_nothing, begin),
		cmocka_unit_test_setup(each_other_tells_what_was_allocated_and_in_which_time, begin),
		cmocka_unit_test_setup(what_is_left_of_the_heap_is_known_but_while_it_sweeps, begin),
		cmocka_unit_test_setup(what_cannot_be_read_counts_at_the_next_one, begin),
		cmocka_unit_test_setup(bytes_that_a_step_of_a_sweep_hides_come_later, begin),
		cmocka_unit_test_setup(two_markings_are_noticed, begin),
		cmocka_unit_test_setup(time_with_finalizers_is_told_with_the_next_marking, begin),
		cmocka_unit_test_setup(a_step_lasts_while_the_threshold_stays, begin),
		cmocka_unit_test_setup(what_was_not_looked_at_ends_a_step, begin),
		cmocka_unit_test(only_a_long_gap_of_several_looks_ends_a_step),
		cmocka_unit_test(a_step_marks_once_on_its_way_from_marking_to_sweeping),
		cmocka_unit_test_setup(what_is_too_much_for_a_step_is_not_waited_for, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
