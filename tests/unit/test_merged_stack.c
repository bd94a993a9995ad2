/* SPDX-License-Identifier: MIT */
/* The array of frames that a stack is merged into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory/array.h"
#include "tests/unit/instead_of.h"
#include "unwind/stack/merged_stack.h"

static bool is_memory_short;

INSTEAD_OF(array_move);
void *__wrap_array_move(void *array, size_t *size, size_t wanted, size_t item)
{
	return is_memory_short ? NULL : __real_array_move(array, size, wanted, item);
}

static struct merged_stack stack;

static int begin(void **state)
{
	(void)state;
	is_memory_short = false;
	merged_stack_begin(&stack, VM_STATE_C);
	return 0;
}

static int end(void **state)
{
	(void)state;
	merged_stack_clear(&stack);
	assert_null(stack.frames);
	assert_int_equal(stack.count, 0);
	return 0;
}

static void frames_are_added_outwards_and_empty(void **state)
{
	struct merged_frame *frame = merged_stack_add(&stack, MERGED_LUA);

	(void)state;
	assert_non_null(frame);
	frame->pc = 8;
	merged_stack_add_lost(&stack, LOST_TOO_DEEP);
	assert_int_equal(stack.count, 2);
	assert_int_equal(stack.frames[0].kind, MERGED_LUA);
	assert_int_equal(stack.frames[0].pc, 8);
	assert_int_equal(stack.frames[1].kind, MERGED_LOST);
	assert_int_equal(stack.frames[1].lost, LOST_TOO_DEEP);
	assert_int_equal(stack.frames[1].pc, 0);
	/* The memory serves for the next stack; what was in it does not stay. */
	stack.native_end = 8;
	stack.passes_copy = true;
	stack.out_of_memory = true;
	merged_stack_begin(&stack, VM_STATE_GC);
	assert_int_equal(stack.count, 0);
	assert_int_equal(stack.vm_state, VM_STATE_GC);
	assert_int_equal(stack.native_end, 0);
	assert_false(stack.passes_copy);
	assert_false(stack.out_of_memory);
	frame = merged_stack_add(&stack, MERGED_VM);
	assert_ptr_equal(frame, stack.frames);
	assert_int_equal(frame->kind, MERGED_VM);
	assert_int_equal(frame->pc, 0);
}

static void a_stack_is_full_at_its_limit(void **state)
{
	(void)state;
	for (size_t i = 0; i < MERGE_FRAMES_MAX; i++) {
		assert_false(merged_stack_is_full(&stack));
		assert_non_null(merged_stack_add(&stack, MERGED_NATIVE));
	}
	assert_true(merged_stack_is_full(&stack));
	assert_false(stack.out_of_memory);
}

static void when_memory_is_short_a_stack_is_cut(void **state)
{
	(void)state;
	is_memory_short = true;
	assert_null(merged_stack_add(&stack, MERGED_LUA));
	assert_int_equal(stack.count, 0);
	is_memory_short = false;
	assert_non_null(merged_stack_add(&stack, MERGED_LUA));
	is_memory_short = true;
	while (stack.count < stack.size)
		assert_non_null(merged_stack_add(&stack, MERGED_LUA));
	assert_null(merged_stack_add(&stack, MERGED_LUA));
	assert_true(stack.out_of_memory);
	assert_true(merged_stack_is_full(&stack));
	merged_stack_add_lost(&stack, LOST_TOO_DEEP);
	assert_int_equal(stack.count, stack.size);
	assert_int_equal(stack.frames[0].kind, MERGED_LUA);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(frames_are_added_outwards_and_empty),
		TEST(a_stack_is_full_at_its_limit),
		TEST(when_memory_is_short_a_stack_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
