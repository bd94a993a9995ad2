/* SPDX-License-Identifier: MIT */
/* What samples tell of collectors: their longest steps, and what was allocated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/bills/gc_bill.h"

static const struct function builtin = { .kind = FRAME_BUILTIN, .name = "collectgarbage" };
static const struct function caller = { .kind = FRAME_LUA, .name = "caller" };
static const struct frame frames[] = { { .function = &builtin }, { .function = &caller, .line = 7 } };

static void add_step(struct gc_bill *bill, pid_t tid, uint64_t begin_ns, uint64_t length_ns,
		     enum gc_phase phase)
{
	const struct sample sample = {
		.time_ns = begin_ns + length_ns,
		.tid = tid,
		.gc = { .phase = phase, .step_ns = length_ns },
		.frames = frames,
		.frame_count = 2,
	};

	gc_bill_add(bill, &sample, 1);
}

static void a_step_is_kept_once_with_what_was_seen_of_it(void **state)
{
	struct gc_bill bill = { 0 };

	(void)state;
	add_step(&bill, 1, 100, 0, GC_PHASE_MARK); /* its first sample: nothing is known of its length */
	assert_int_equal(bill.steps[0].length_ns, 0);
	add_step(&bill, 1, 100, 10, GC_PHASE_MARK);
	add_step(&bill, 2, 100, 15, GC_PHASE_SWEEP);
	add_step(&bill, 1, 100, 20, GC_PHASE_ATOMIC);
	assert_int_equal(bill.steps[0].length_ns, 20);
	assert_int_equal(bill.steps[0].tid, 1);
	assert_int_equal(bill.steps[0].begin_ns, 100);
	assert_int_equal(bill.steps[0].first, GC_PHASE_MARK);
	assert_int_equal(bill.steps[0].last, GC_PHASE_ATOMIC);
	assert_ptr_equal(bill.steps[0].frame.function, &caller);
	assert_int_equal(bill.steps[0].frame.line, 7);
	assert_int_equal(bill.steps[1].length_ns, 15);
	assert_int_equal(bill.steps[1].first, GC_PHASE_SWEEP);
	assert_int_equal(bill.steps[2].length_ns, 0);
}

static void the_longest_steps_are_kept(void **state)
{
	static const uint64_t lengths[] = { 3, 9, 1, 7, 5, 8, 2, 6, 4 };
	struct gc_bill bill = { 0 };

	(void)state;
	for (uint64_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		add_step(&bill, 1, 100 * i, lengths[i], GC_PHASE_SWEEP);
	for (uint64_t i = 0; i < GC_STEPS_MAX; i++)
		assert_int_equal(bill.steps[i].length_ns, 9 - i);
	add_step(&bill, 1, 0, 10, GC_PHASE_SWEEP); /* the one that was out of the list goes on */
	assert_int_equal(bill.steps[0].length_ns, 10);
	assert_int_equal(bill.steps[GC_STEPS_MAX - 1].length_ns, 6);
}

static void look(struct gc_allocated *allocated, bool has_marked, uint64_t bytes)
{
	const struct sample sample = {
		.cpu_ns = 1, /* weights are evened out */
		.gc = { .heap_bytes = 1, .has_marked = has_marked, .allocated_bytes = bytes, .used_ns = 10 },
	};

	gc_allocated_add(allocated, &sample);
}

static void looks_without_a_marking_count_for_all(void **state)
{
	struct gc_allocated allocated = { 0 }, more = { 0 };
	const struct sample unknown = { .cpu_ns = 10, .gc = { .allocated_bytes = 9, .used_ns = 10 } };
	bool is_least = true;

	(void)state;
	assert_int_equal(gc_allocated_bytes(&allocated, &is_least), 0);
	assert_false(is_least);
	gc_allocated_add(&allocated, &unknown);
	for (int i = 0; i < 8; i++)
		look(&allocated, i >= 6, i >= 6 ? 30 : 100);
	assert_int_equal(gc_allocated_bytes(&allocated, &is_least), 800);
	assert_false(is_least);
	look(&more, true, 30);
	gc_allocated_merge(&allocated, &more);
	assert_int_equal(gc_allocated_bytes(&allocated, &is_least), 690);
	assert_true(is_least);
}

static void time_adds_up_by_phase(void **state)
{
	struct gc_bill bill = { 0 };
	static const enum gc_phase phases[] = { GC_PHASE_NONE, GC_PHASE_MARK, GC_PHASE_MARK, GC_PHASE_SWEEP };

	(void)state;
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
		gc_bill_add(&bill, &(struct sample){ .gc = { .phase = phases[i], .has_marked = i < 3 } },
			    10 + i);
	assert_int_equal(bill.phase_ns[GC_PHASE_NONE], 10);
	assert_int_equal(bill.phase_ns[GC_PHASE_MARK], 11 + 12);
	assert_int_equal(bill.phase_ns[GC_PHASE_SWEEP], 13);
	assert_true(bill.phase_squares[GC_PHASE_MARK] == 11 * 11 + 12 * 12);
	assert_true(bill.phase_squares[GC_PHASE_SWEEP] == 13 * 13);
	assert_int_equal(bill.cycles, 3);
}

static void a_collector_that_ran_at_a_sample_is_told_by_any_phase(void **state)
{
	(void)state;
	for (int phase = GC_PHASE_NONE; phase < GC_PHASE_COUNT; phase++) {
		struct gc_bill bill = { 0 };

		assert_false(gc_bill_has_any(&bill));
		gc_bill_add(&bill, &(struct sample){ .gc = { .phase = (enum gc_phase)phase } }, 1);
		assert_int_equal(gc_bill_has_any(&bill), phase != GC_PHASE_NONE);
	}
}

static void the_heap_has_its_least_and_its_most(void **state)
{
	static const uint64_t sizes[] = { 50, 0, 70, 1, 30 };
	static const struct {
		uint64_t least, most;
	} known[] = { { 50, 50 }, { 50, 50 }, { 50, 70 }, { 1, 70 }, { 1, 70 } };
	struct gc_bill bill = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		gc_bill_add(&bill, &(struct sample){ .gc = { .heap_bytes = sizes[i] } }, 1);
		assert_int_equal(bill.heap_least, known[i].least);
		assert_int_equal(bill.heap_most, known[i].most);
	}
}

/* Samples do not tell VMs apart: what two threads run may be two. */
static void heaps_of_several_threads_are_told(void **state)
{
	static const struct {
		pid_t tid;
		uint64_t bytes;
		bool has_heaps;
	} samples[] = { { 3, 0, false },  { 5, 80, false }, { 3, 0, false },
			{ 5, 60, false }, { 3, 20, true },  { 5, 70, true } };
	struct gc_bill bill = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		gc_bill_add(
			&bill,
			&(struct sample){ .tid = samples[i].tid, .gc = { .heap_bytes = samples[i].bytes } },
			1);
		assert_int_equal(bill.has_heaps, samples[i].has_heaps);
	}
}

static void what_samples_allocate_is_in_the_bill(void **state)
{
	struct gc_bill bill = { 0 };
	bool is_least = true;
	const struct sample sample = {
		.cpu_ns = 1,
		.gc = { .heap_bytes = 1, .allocated_bytes = 100, .used_ns = 10 },
	};

	(void)state;
	gc_bill_add(&bill, &sample, 1);
	gc_bill_add(&bill, &sample, 1);
	assert_int_equal(gc_allocated_bytes(&bill.allocated, &is_least), 200);
	assert_false(is_least);
}

/* The step as a sample with these frames alone tells it. */
static struct gc_step step_with(const struct frame *of, size_t count)
{
	struct gc_bill bill = { 0 };
	const struct sample sample = {
		.time_ns = 110,
		.tid = 1,
		.gc = { .phase = GC_PHASE_MARK, .step_ns = 10 },
		.frames = of,
		.frame_count = count,
	};

	gc_bill_add(&bill, &sample, 1);
	return bill.steps[0];
}

static void a_step_is_of_the_innermost_lua_function(void **state)
{
	static const struct function outer = { .kind = FRAME_LUA, .name = "outer" };
	const struct frame on_top[] = { { .function = &caller, .line = 7 },
					{ .function = &outer, .line = 9 } };

	(void)state;
	assert_ptr_equal(step_with(on_top, 2).frame.function, &caller);
	assert_int_equal(step_with(on_top, 2).frame.line, 7);
	assert_ptr_equal(step_with(frames, 2).frame.function, &caller);
	/* The stack ends at the builtin, though Lua lies behind it in memory. */
	assert_null(step_with(frames, 1).frame.function);
	assert_null(step_with(NULL, 0).frame.function);
}

static void steps_of_one_thread_that_touch_are_one(void **state)
{
	static const struct {
		uint64_t begin_ns, length_ns;
		size_t steps;
	} known[] = { { 110, 12, 1 }, { 111, 12, 2 }, { 89, 11, 1 }, { 88, 11, 2 } };

	(void)state;
	/* Each comes after a step from 100 to 110. */
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct gc_bill bill = { 0 };
		size_t count = 0;

		add_step(&bill, 1, 100, 10, GC_PHASE_MARK);
		add_step(&bill, 1, known[i].begin_ns, known[i].length_ns, GC_PHASE_SWEEP);
		while (bill.steps[count].length_ns)
			count++;
		assert_int_equal(count, known[i].steps);
		assert_int_equal(bill.steps[0].begin_ns, known[i].begin_ns);
		assert_int_equal(bill.steps[0].first, count == 1 ? GC_PHASE_MARK : GC_PHASE_SWEEP);
	}
}

static void of_steps_that_are_equally_long_the_first_stays_before(void **state)
{
	struct gc_bill bill = { 0 };

	(void)state;
	for (uint64_t i = 0; i < GC_STEPS_MAX + 3; i++)
		add_step(&bill, 1, 100 * i, 10, GC_PHASE_SWEEP);
	for (uint64_t i = 0; i < GC_STEPS_MAX; i++)
		assert_int_equal(bill.steps[i].begin_ns, 100 * i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_kept_once_with_what_was_seen_of_it),
		cmocka_unit_test(the_longest_steps_are_kept),
		cmocka_unit_test(looks_without_a_marking_count_for_all),
		cmocka_unit_test(time_adds_up_by_phase),
		cmocka_unit_test(a_collector_that_ran_at_a_sample_is_told_by_any_phase),
		cmocka_unit_test(the_heap_has_its_least_and_its_most),
		cmocka_unit_test(heaps_of_several_threads_are_told),
		cmocka_unit_test(what_samples_allocate_is_in_the_bill),
		cmocka_unit_test(a_step_is_of_the_innermost_lua_function),
		cmocka_unit_test(steps_of_one_thread_that_touch_are_one),
		cmocka_unit_test(of_steps_that_are_equally_long_the_first_stays_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
