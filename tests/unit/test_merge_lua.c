/* SPDX-License-Identifier: MIT */
/* Stacks of coroutines, and of threads that were not stopped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/vmstate.h"
#include "tests/unit/made_up_calls.h"
#include "unwind/stack/merge_lua.h"

enum {
	FRAME = C_STACK_AT + 0x200,
	SAVED = 7,
};

static struct merged_stack stack;

static uint64_t delta(size_t slots, uint64_t type)
{
	return slots * SLOT_SIZE | type;
}

/* C code has called function 0, that function 1, and that function 2, a C function, which runs. */
static void put_calls(size_t thread)
{
	put_three_frames(thread, put_c_function(2));
	put_base(thread, INNER, INNER + 2);
}

/* The stack of thread 0, which is parked. */
static void merge_parked(void)
{
	const uint64_t addresses[] = { thread_at(0) };

	snapshot_clear(states.process.snapshot);
	capture_coroutines(&states.capture, &states.process, lua_image_global(states.lua, 0), addresses, 1);
	assert_int_equal(states.capture.thread_count, 1);
	assert_int_equal(merge_coroutine(&states.capture, 0, states.process.objects, &stack), 0);
	assert_int_equal(stack.vm_state, VM_STATE_NONE);
}

static void check_lua(size_t index, size_t function, size_t instruction)
{
	assert_in_range(index, 0, stack.count - 1);
	assert_int_equal(stack.frames[index].kind, MERGED_LUA);
	assert_int_equal(stack.frames[index].function->address, function_at(function));
	assert_ptr_equal(stack.frames[index].proto, stack.frames[index].function->proto);
	assert_int_equal(stack.frames[index].pc, bytecode_at(function, instruction));
	assert_ptr_equal(stack.frames[index].global, lua_image_global(states.lua, 0));
}

static void check_place(size_t index, size_t thread, size_t slot)
{
	assert_non_null(stack.frames[index].thread);
	assert_int_equal(stack.frames[index].thread->address, thread_at(thread));
	assert_int_equal(stack.frames[index].base, base_of(thread, slot));
}

static void check_caller(size_t index, size_t function, size_t instruction)
{
	assert_non_null(stack.frames[index].caller);
	assert_int_equal(stack.frames[index].caller->address, proto_at(function));
	assert_int_equal(stack.frames[index].caller_pc, bytecode_at(function, instruction));
}

static void check_lost(size_t index, enum lost_reason reason)
{
	assert_in_range(index, 0, stack.count - 1);
	assert_int_equal(stack.frames[index].kind, MERGED_LOST);
	assert_int_equal(stack.frames[index].lost, reason);
}

/* From index on, the three frames of put_calls(). */
static void check_calls(size_t index, size_t thread)
{
	assert_in_range(index + 2, 0, stack.count - 1);
	assert_int_equal(stack.frames[index].kind, MERGED_C_FUNCTION);
	assert_int_equal(stack.frames[index].function->address, function_at(2));
	assert_null(stack.frames[index].proto);
	check_place(index, thread, INNER);
	check_caller(index, 1, IN_MIDDLE);
	assert_false(stack.frames[index].called_by_metamethod);
	check_lua(index + 1, 1, IN_MIDDLE);
	check_place(index + 1, thread, MIDDLE);
	check_caller(index + 1, 0, IN_OUTER);
	check_lua(index + 2, 0, IN_OUTER);
	check_place(index + 2, thread, OUTER);
	assert_null(stack.frames[index + 2].caller);
	assert_false(stack.frames[index].compiled || stack.frames[index + 1].compiled);
}

static int end(void **state)
{
	merged_stack_clear(&stack);
	return states_end(state);
}

/*---- Coroutines ----*/

static void a_coroutine_has_its_frames(void **state)
{
	(void)state;
	put_thread(0, 0, 0);
	put_calls(0);
	merge_parked();
	assert_int_equal(stack.count, 3);
	check_calls(0, 0);
}

static void frames_below_native_code_are_there_too(void **state)
{
	(void)state;
	put_thread(0, 0, 0);
	put_calls(0);
	put_frame(0, INNER + 10, function_at(1), delta(10, FRAME_C));
	put_base(0, INNER + 10, INNER + 12);
	merge_parked();
	assert_int_equal(stack.count, 4);
	assert_null(stack.frames[0].caller);
	check_calls(1, 0);
}

static void a_metamethods_caller_is_beneath_its_continuation(void **state)
{
	enum { META = INNER + 10 };

	(void)state;
	put_thread(0, 0, 0);
	put_calls(0);
	put_frame(0, META, function_at(2), delta(META - MIDDLE, FRAME_CONT));
	put_slot(0, META - 3, bytecode_at(1, IN_MIDDLE + 2));
	put_slot(0, META - 4, VM_AT);
	put_base(0, META, META + 2);
	merge_parked();
	assert_int_equal(stack.count, 3);
	assert_true(stack.frames[0].called_by_metamethod);
	check_caller(0, 1, IN_MIDDLE + 1);
	check_lua(1, 1, IN_MIDDLE + 1);
	assert_false(stack.frames[1].called_by_metamethod);
}

static void what_is_called_by_pcall_has_no_instruction_that_called_it(void **state)
{
	enum { PROTECTED = INNER + 4 };

	(void)state;
	put_thread(0, 0, 0);
	put_calls(0);
	put_frame(0, PROTECTED, function_at(1), delta(PROTECTED - INNER, FRAME_PCALL));
	put_base(0, PROTECTED, PROTECTED + 2);
	merge_parked();
	assert_int_equal(stack.count, 4);
	assert_null(stack.frames[0].caller);
	check_calls(1, 0);
}

static void a_chain_that_leads_nowhere_is_broken(void **state)
{
	(void)state;
	put_thread(0, 0, 0);
	put_calls(0);
	put_frame(0, MIDDLE, function_at(1), delta(SLOTS, FRAME_C));
	merge_parked();
	assert_int_equal(stack.count, 3);
	check_lua(1, 1, IN_MIDDLE);
	check_lost(2, LOST_BROKEN_CHAIN);
	/* Nobody knows the function. */
	put_calls(0);
	put_slot(0, OUTER - 2, tagged(TAG_FUNC, FREE_AT));
	put_frame(0, MIDDLE, function_at(1), delta(MIDDLE - OUTER, FRAME_C));
	merge_parked();
	assert_int_equal(stack.count, 3);
	check_lost(2, LOST_BROKEN_CHAIN);
}

/* Its function is where its base will be, and its arguments are behind it. */
static void a_coroutine_that_has_not_started_has_its_function(void **state)
{
	(void)state;
	put_thread(0, 0, 0);
	put_slot(0, BOTTOM, tagged(TAG_FUNC, put_function(0)));
	put_base(0, BOTTOM, BOTTOM + 1);
	merge_parked();
	assert_int_equal(stack.count, 1);
	check_lua(0, 0, 0);
	put_slot(0, BOTTOM, tagged(TAG_FUNC, put_c_function(2)));
	merge_parked();
	assert_int_equal(stack.count, 1);
	assert_int_equal(stack.frames[0].kind, MERGED_C_FUNCTION);
	assert_int_equal(stack.frames[0].pc, 0);
	/* C code may leave anything there. */
	put_slot(0, BOTTOM, tagged(TAG_TAB, function_at(0)));
	merge_parked();
	assert_int_equal(stack.count, 0);
	put_slot(0, BOTTOM, tagged(TAG_FUNC, FREE_AT));
	merge_parked();
	assert_int_equal(stack.count, 1);
	check_lost(0, LOST_BROKEN_CHAIN);
	/* The function's prototype cannot be read. */
	put_slot(0, BOTTOM, tagged(TAG_FUNC, put_function(3)));
	put(function_at(3) + (uint64_t)states.vm.layout.GCfunc_pc, C_STACK_END, 8);
	merge_parked();
	assert_int_equal(stack.count, 1);
	check_lost(0, LOST_BROKEN_CHAIN);
}

static void a_coroutine_that_has_ended_has_no_frames(void **state)
{
	(void)state;
	put_thread(0, 0, 0);
	put_slot(0, BOTTOM, tagged(TAG_FUNC, put_function(0)));
	put_base(0, BOTTOM, BOTTOM);
	merge_parked();
	assert_int_equal(stack.count, 0);
	put_base(0, BOTTOM, BOTTOM + 1);
	put(thread_at(0) + (uint64_t)states.vm.layout.L_status, LUA_YIELD, 1);
	merge_parked();
	assert_int_equal(stack.count, 0);
}

static void a_coroutine_whose_stack_is_unmapped_is_lost(void **state)
{
	(void)state;
	put_thread(0, 0, 0);
	put_calls(0);
	unmap(slots_at(0));
	merge_parked();
	assert_int_equal(stack.count, 1);
	check_lost(0, LOST_NOT_CAPTURED);
}

/*---- Threads that were not stopped ----*/

/* The stack of a thread that runs on, which did this by g->vmstate. */
static void merge_live(int32_t vmstate, uint64_t jit_base, bool lacks_native)
{
	const struct native_stack native_stack = {
		.range = { .address = C_STACK_AT, .length = (size_t)(C_STACK_END - C_STACK_AT) },
	};

	put(g_at(0) + (uint64_t)states.vm.layout.g_vmstate, (uint32_t)vmstate, 4);
	put_word(g_at(0) + (uint64_t)states.vm.layout.g_jit_base, jit_base);
	snapshot_clear(states.process.snapshot);
	assert_int_equal(capture_running(&states.capture, &states.process, &states.memory, &native_stack,
					 &states.hints),
			 CAPTURE_WHOLE);
	assert_int_equal(merge_running(&states.capture, states.process.objects, lacks_native, &stack), 0);
}

static void put_running(size_t thread, uint64_t cframe, uint64_t return_address)
{
	put_thread(thread, 0, cframe);
	put_cframe(cframe, thread_at(thread), 0, return_address);
	put_calls(thread);
}

static void a_thread_in_c_code_has_its_frames(void **state)
{
	(void)state;
	put_running(0, FRAME, NATIVE_CODE);
	put_g(0, thread_at(0));
	merge_live(VMST_C, 0, false);
	assert_int_equal(stack.vm_state, VM_STATE_C);
	assert_int_equal(stack.count, 3);
	check_calls(0, 0);
	merge_live(VMST_GC, 0, true);
	assert_int_equal(stack.vm_state, VM_STATE_GC);
	assert_int_equal(stack.count, 4);
	check_calls(0, 0);
	check_lost(3, LOST_NOT_STOPPED);
	/* So has one that another state has called; that one's frames are not copied. */
	states.capture.running_was_called = true;
	assert_int_equal(merge_running(&states.capture, states.process.objects, false, &stack), 0);
	assert_int_equal(stack.count, 4);
	check_calls(0, 0);
	check_lost(3, LOST_NOT_STOPPED);
}

static void a_thread_that_may_have_moved_on_says_so(void **state)
{
	static const struct {
		int32_t vmstate;
		enum vm_state expected;
	} cases[] = {
		{ VMST_INTERP, VM_STATE_INTERPRETED }, { VMST_RECORD, VM_STATE_RECORDING },
		{ VMST_OPT, VM_STATE_OPTIMISING },     { VMST_ASM, VM_STATE_ASSEMBLING },
		{ VMST_EXIT, VM_STATE_EXIT },          { 3, VM_STATE_EXIT },
	};

	(void)state;
	put_running(0, FRAME, NATIVE_CODE);
	put_g(0, thread_at(0));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		merge_live(cases[i].vmstate, 0, false);
		assert_int_equal(stack.vm_state, cases[i].expected);
		assert_int_equal(stack.count, 4);
		check_calls(0, 0);
		check_lost(3, LOST_MAY_HAVE_MOVED_ON);
	}
	/* In a Lua function, the position is the one saved last. */
	put_base(0, MIDDLE, MIDDLE + 8);
	put_word(FRAME + (uint64_t)states.vm.layout.CFRAME_PC, bytecode_at(1, SAVED + 1));
	merge_live(VMST_INTERP, 0, false);
	assert_int_equal(stack.count, 3);
	check_lua(0, 1, SAVED);
	check_lua(1, 0, IN_OUTER);
	check_lost(2, LOST_MAY_HAVE_MOVED_ON);
}

static void a_thread_in_a_trace_is_known_below_it(void **state)
{
	(void)state;
	put_running(0, FRAME, NATIVE_CODE);
	put_g(0, thread_at(0));
	merge_live(0, base_of(0, MIDDLE), false);
	assert_int_equal(stack.vm_state, VM_STATE_COMPILED);
	assert_int_equal(stack.count, 3);
	check_lost(0, LOST_NOT_STOPPED);
	assert_int_equal(stack.frames[1].kind, MERGED_LUA);
	assert_int_equal(stack.frames[1].function->address, function_at(1));
	assert_int_equal(stack.frames[1].pc, 0);
	assert_true(stack.frames[1].compiled);
	check_lua(2, 0, IN_OUTER);
	assert_false(stack.frames[2].compiled);
	/* A base that is none. */
	merge_live(0, base_of(0, MIDDLE) + 4, false);
	check_lost(0, LOST_NOT_STOPPED);
	check_lost(1, LOST_BROKEN_CHAIN);
	assert_int_equal(stack.count, 2);
}

static void resumers_follow_in_their_order(void **state)
{
	enum { FRAME_SIZE = 80, IN_VM = VM_AT + 8 };

	(void)state;
	put_running(0, FRAME, IN_VM);
	put_running(2, FRAME + FRAME_SIZE, IN_VM);
	put_running(1, FRAME + 2 * FRAME_SIZE, NATIVE_CODE);
	put_g(0, thread_at(0));
	merge_live(VMST_INTERP, 0, false);
	assert_int_equal(states.capture.thread_count, 3);
	assert_int_equal(stack.count, 10);
	check_calls(0, 0);
	check_lost(3, LOST_MAY_HAVE_MOVED_ON);
	check_calls(4, 2);
	check_calls(7, 1);
}

static void parents_that_are_parked_follow_as_such(void **state)
{
	struct lua_thread *threads = states.capture.threads;

	(void)state;
	put_running(0, FRAME, NATIVE_CODE);
	put_g(0, thread_at(0));
	put_running(1, FRAME + 0x400, NATIVE_CODE);
	put_calls(1);
	merge_live(VMST_C, 0, false);
	assert_int_equal(states.capture.thread_count, 2);
	/* As if nginx had parked it. */
	threads[0].parent = thread_at(1);
	threads[1].parent = thread_at(0);
	threads[1].cframe = 0;
	assert_int_equal(merge_running(&states.capture, states.process.objects, false, &stack), 0);
	assert_int_equal(stack.count, 7);
	check_calls(0, 0);
	assert_int_equal(stack.frames[3].kind, MERGED_CHILD);
	check_calls(4, 1);
	threads[0].parent = thread_at(9); /* nobody has captured it */
	assert_int_equal(merge_running(&states.capture, states.process.objects, false, &stack), 0);
	assert_int_equal(stack.count, 3);
}

static void a_thread_whose_base_leads_nowhere_is_broken(void **state)
{
	(void)state;
	put_running(0, FRAME, NATIVE_CODE);
	put_g(0, thread_at(0));
	put_base(0, SLOTS - 1, SLOTS);
	merge_live(VMST_C, 0, true);
	assert_int_equal(stack.count, 2);
	check_lost(0, LOST_BROKEN_CHAIN);
	check_lost(1, LOST_NOT_STOPPED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, states_begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_coroutine_has_its_frames),
		TEST(frames_below_native_code_are_there_too),
		TEST(a_metamethods_caller_is_beneath_its_continuation),
		TEST(what_is_called_by_pcall_has_no_instruction_that_called_it),
		TEST(a_chain_that_leads_nowhere_is_broken),
		TEST(a_coroutine_that_has_not_started_has_its_function),
		TEST(a_coroutine_that_has_ended_has_no_frames),
		TEST(a_coroutine_whose_stack_is_unmapped_is_lost),
		TEST(a_thread_in_c_code_has_its_frames),
		TEST(a_thread_that_may_have_moved_on_says_so),
		TEST(a_thread_in_a_trace_is_known_below_it),
		TEST(resumers_follow_in_their_order),
		TEST(parents_that_are_parked_follow_as_such),
		TEST(a_thread_whose_base_leads_nowhere_is_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
