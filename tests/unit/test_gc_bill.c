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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_kept_once_with_what_was_seen_of_it),
		cmocka_unit_test(the_longest_steps_are_kept),
		cmocka_unit_test(looks_without_a_marking_count_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
