/* SPDX-License-Identifier: MIT */
/*
 * What is captured of Lua stacks: their functions, what their values lead to, coroutines; and code made at
 * run time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define STATES_AT 0x400000 /* some are without GC64 */

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_states.h"
#include "unwind/capture/capture_parts.h"

enum {
	FRAME = C_STACK_AT + 0x200,
	TEXT_BYTES = 5,
	TAG_OF_CDATA = ~10,
};

INSTEAD_OF(lua_objects_capture);

enum { FIRST_ASKED = 16 };

static struct {
	uint64_t first[FIRST_ASKED];
	size_t count;
} asked; /* the functions that were asked for */

void __wrap_lua_objects_capture(struct lua_objects *objects, struct snapshot *snapshot,
				const struct layout *layout, const uint64_t *functions, size_t count)
{
	for (size_t i = 0; i < count; i++, asked.count++)
		if (asked.count < FIRST_ASKED)
			asked.first[asked.count] = functions[i];
	__real_lua_objects_capture(objects, snapshot, layout, functions, count);
}

static const struct function_object *function(size_t i)
{
	return lua_objects_function(states.process.objects, function_at(i));
}

/* Thread 0 runs, with these slots in use. */
static void put_running(size_t base_slot, size_t top_slot)
{
	put_g(0, put_thread(0, 0, FRAME));
	put_cframe(FRAME, thread_at(0), 0, NATIVE_CODE);
	put_base(0, base_slot, top_slot);
}

/*---- Functions ----*/

static void each_function_on_a_stack_is_captured_live_or_stale(void **state)
{
	(void)state;
	put_running(4, 6);
	put_slot(0, 2, tagged(TAG_FUNC, put_function(0)));
	put_slot(0, 5, tagged(TAG_FUNC, function_at(0)));
	put_slot(0, SLOTS - 1, tagged(TAG_FUNC, put_function(1)));
	put_slot(0, 7, tagged(TAG_TAB, put_function(2)));
	put_slot(0, 8, tagged(TAG_FUNC, put_c_function(3)));
	put_slot(0, 9, tagged(TAG_FUNC, FREE_AT)); /* no function */
	states_capture();
	assert_non_null(function(0));
	assert_non_null(function(0)->proto);
	assert_int_equal(function(0)->proto->firstline, 1);
	assert_non_null(function(1));
	assert_null(function(2));
	assert_non_null(function(3));
	assert_null(function(3)->proto);
}

static void functions_on_the_stacks_of_resumers_are_captured_too(void **state)
{
	(void)state;
	put_running(4, 6);
	put_cframe(FRAME, thread_at(0), 0, VM_AT + 8);
	put_cframe(FRAME + 80, put_thread(1, 0, FRAME + 80), 0, NATIVE_CODE);
	put_slot(0, 2, tagged(TAG_FUNC, put_function(0)));
	put_slot(1, 2, tagged(TAG_FUNC, put_function(1)));
	states_capture();
	assert_int_equal(states.capture.thread_count, 2);
	assert_non_null(function(0));
	assert_non_null(function(1));
}

/* Stacks are mostly of nil, and of copies of one function. */
static void only_slots_of_functions_are_asked_for_and_neighbours_once(void **state)
{
	(void)state;
	put_running(4, 6);
	put_slot(0, 2, tagged(TAG_FUNC, put_function(0)));
	put_slot(0, 3, tagged(TAG_FUNC, function_at(0)));
	put_slot(0, 5, tagged(TAG_FUNC, put_function(1)));
	put_slot(0, 7, tagged(TAG_FUNC, function_at(1)));
	put_slot(0, 8, tagged(TAG_FUNC, function_at(0)));
	asked.count = 0;
	states_capture();
	assert_int_equal(asked.count, 3);
	assert_int_equal(asked.first[0], function_at(0));
	assert_int_equal(asked.first[1], function_at(1));
	assert_int_equal(asked.first[2], function_at(0));
}

static void without_gc64_any_slot_may_be_a_frames_function(void **state)
{
	(void)state;
	states.vm.layout.gc64 = false;
	put_running(4, 6);
	put_frame(0, 4, put_function(0), 0x123);
	put_slot(0, 5, tagged(TAG_FUNC, put_function(1)));
	put_slot(0, 6, 0x77700000000 | (put_function(2) + 4)); /* not aligned */
	put_slot(0, 7, tagged(TAG_FUNC, put_function(3) + 4));
	states_capture();
	assert_non_null(function(0));
	assert_non_null(function(0)->proto);
	assert_non_null(function(1));
	assert_null(function(2));
	assert_null(function(3));
}

static void a_slot_has_the_address_of_a_function(void **state)
{
	struct layout *layout = &states.vm.layout;

	(void)state;
	assert_int_equal(capture_function_in_slot(layout, tagged(TAG_FUNC, FREE_AT)), FREE_AT);
	assert_int_equal(capture_function_in_slot(layout, tagged(TAG_TAB, FREE_AT)), 0);
	assert_int_equal(capture_function_in_slot(layout, FREE_AT), 0);
	layout->gc64 = false;
	assert_int_equal(capture_function_in_slot(layout, tagged(TAG_FUNC, FREE_AT)), FREE_AT);
	assert_int_equal(capture_function_in_slot(layout, tagged(TAG_TAB, FREE_AT)), FREE_AT);
	assert_int_equal(capture_function_in_slot(layout, FREE_AT | (uint64_t)5 << 32), FREE_AT);
	assert_int_equal(capture_function_in_slot(layout, (FREE_AT + 4) | (uint64_t)5 << 32), 0);
}

/* Thread 0 has a stack of so many slots, all of nil, in place of its own. */
static uint64_t put_large_stack(size_t slots)
{
	const struct layout *layout = &states.vm.layout;
	const uint64_t at = SLOTS_AT;

	put_word(thread_at(0) + (uint64_t)layout->L_stack, at);
	put_word(thread_at(0) + (uint64_t)layout->L_maxstack, at + slots * SLOT_SIZE);
	put(thread_at(0) + (uint64_t)layout->L_stacksize, slots, 4);
	for (size_t i = 1; i < slots; i++)
		put_slot(0, i, UINT64_MAX);
	return at;
}

static void functions_of_a_large_stack_are_captured_in_parts(void **state)
{
	enum { LARGE = 8192, PART = 4096 };

	(void)state;
	put_running(4, 6);
	put_large_stack(LARGE);
	/* Each slot has another one, of which most are none. */
	for (size_t i = 2; i < PART + 100; i++)
		put_slot(0, i, tagged(TAG_FUNC, STATES_AT + i * SLOT_SIZE));
	for (size_t i = 0; i < 4; i++)
		put_slot(0, PART + i, tagged(TAG_FUNC, put_function(i)));
	put_slot(0, LARGE - 1, tagged(TAG_FUNC, put_function(4)));
	asked.count = 0;
	states_capture();
	assert_int_equal(asked.count, PART + 100 - 2 + 1); /* each in one part */
	for (size_t i = 0; i < 5; i++)
		assert_non_null(function(i));
}

static void a_stack_that_is_unmapped_has_no_slots(void **state)
{
	(void)state;
	put_running(4, 6);
	put_slot(0, 5, tagged(TAG_FUNC, put_function(0)));
	unmap(slots_at(0));
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	assert_null(states.capture.threads[0].slots);
	assert_null(function(0));
}

/*---- Coroutines ----*/

static void capture_parked(const uint64_t *addresses, size_t count)
{
	snapshot_clear(states.process.snapshot);
	capture_coroutines(&states.capture, &states.process, lua_image_global(states.lua, 0), addresses,
			   count);
}

static void coroutines_are_captured_as_they_are(void **state)
{
	const uint64_t addresses[] = { put_thread(0, 0, 0), FREE_AT, C_STACK_END, put_thread(1, 0, FRAME),
				       put_thread(2, 1, 0) };
	uint8_t byte;

	(void)state;
	put_base(0, 4, 6);
	put_slot(0, 2, tagged(TAG_FUNC, put_function(0)));
	put_slot(0, 5, tagged(TAG_FUNC, put_function(1)));
	put_slot(0, 6, tagged(TAG_FUNC, put_function(2))); /* above the top */
	put_base(1, 4, SLOTS + 8);                         /* a top beyond the stack */
	put_slot(1, SLOTS - 1, tagged(TAG_FUNC, put_function(3)));
	states.capture.running = states.capture.globals;
	states.capture.request.address = FREE_AT;
	states.capture.own_end = 1;
	capture_parked(addresses, sizeof(addresses) / sizeof(addresses[0]));
	assert_int_equal(states.capture.thread_count, 2);
	assert_int_equal(states.capture.threads[0].address, thread_at(0));
	assert_int_equal(states.capture.threads[1].address, thread_at(1));
	for (size_t i = 0; i < 2; i++)
		assert_ptr_equal(states.capture.threads[i].slots,
				 snapshot_view(states.process.snapshot, slots_at(i), SLOTS * SLOT_SIZE));
	assert_non_null(function(0));
	assert_non_null(function(1));
	assert_null(function(2));
	assert_non_null(function(3));
	assert_int_equal(states.capture.global_count, 1);
	/* They are no native thread's. */
	assert_null(states.capture.running);
	assert_int_equal(states.capture.request.address, 0);
	assert_int_equal(states.capture.own_end, 0);
	assert_int_equal(states.capture.stack_end, 0);
	assert_int_equal(memory_read(snapshot_memory(states.process.snapshot), NATIVE_CODE, &byte, 1),
			 MEMORY_NOT_CAPTURED);
}

static void functions_of_an_earlier_capture_do_not_count(void **state)
{
	const uint64_t addresses[] = { put_thread(0, 0, 0) };

	(void)state;
	put_base(0, 4, 6);
	put_slot(0, 2, tagged(TAG_FUNC, put_function(0)));
	capture_parked(addresses, 1);
	assert_non_null(function(0));
	put_slot(0, 2, UINT64_MAX);
	capture_parked(addresses, 1);
	assert_null(function(0));
}

static void so_many_coroutines_and_no_more(void **state)
{
	enum { MANY = CAPTURE_THREADS_MAX + 1 };
	uint64_t addresses[MANY];

	(void)state;
	for (size_t i = 0; i < MANY; i++)
		addresses[i] = put_thread(i, 0, 0);
	capture_parked(addresses, MANY);
	assert_int_equal(states.capture.thread_count, CAPTURE_THREADS_MAX);
	assert_int_equal(states.capture.threads[CAPTURE_THREADS_MAX - 1].address,
			 thread_at(CAPTURE_THREADS_MAX - 1));
	capture_parked(addresses, 1);
	assert_int_equal(states.capture.thread_count, 1);
}

/*---- Values ----*/

enum { STRINGS = 5, BASE_SLOT = 200, FAR_FROM_BASE = 64, ABOVE_TOP = 256, LARGE_STACK = 1024 };

static uint64_t string_at(size_t i)
{
	return FREE_AT + i * 2 * STATES_PAGE;
}

static bool has_string(size_t i)
{
	return is_copied(string_at(i) + (uint64_t)states.vm.layout.GCstr_size, TEXT_BYTES);
}

/* A string of its own in this slot of thread 0. */
static void put_string(size_t i, size_t slot)
{
	put(string_at(i) + (uint64_t)states.vm.layout.GChead_gct, GCT_STRING, 1);
	put(string_at(i) + (uint64_t)states.vm.layout.GCstr_len, TEXT_BYTES, 4);
	put_slot(0, slot, tagged(TAG_STR, string_at(i)));
}

static int begin_with_values(void **state)
{
	const int status = states_begin(state);

	states.process.values = value_capture_new();
	put_running(BASE_SLOT, BASE_SLOT + 2);
	put_large_stack(LARGE_STACK);
	return states.process.values ? status : -1;
}

static int end_with_values(void **state)
{
	value_capture_free(states.process.values);
	return states_end(state);
}

static void values_are_copied_only_if_they_are_wanted(void **state)
{
	struct value_capture *values = states.process.values;

	(void)state;
	put_string(0, BASE_SLOT);
	states.process.values = NULL;
	states_capture();
	assert_false(has_string(0));
	states.process.values = values;
	states_capture();
	assert_true(has_string(0));
}

static void slots_in_use_and_those_of_a_frame_above_are_copied(void **state)
{
	(void)state;
	put_string(0, 1);
	put_string(1, BASE_SLOT + 2 + ABOVE_TOP - 1);
	put_string(2, BASE_SLOT + 2 + ABOVE_TOP);
	states_capture();
	assert_true(has_string(0) && has_string(1));
	assert_false(has_string(2));
	/* While a call is under way the base may be above the top. */
	put_base(0, BASE_SLOT + 10, BASE_SLOT);
	states_capture();
	assert_true(has_string(2));
}

static void the_stack_is_in_use_as_far_as_registers_point_into_it(void **state)
{
	(void)state;
	put_string(0, BASE_SLOT + 50 + ABOVE_TOP - 1);
	put_string(1, BASE_SLOT + 50 + ABOVE_TOP);
	put_string(2, LARGE_STACK - 1);
	states.registers.rdx = slots_at(0) + (BASE_SLOT + 50) * SLOT_SIZE;
	states.registers.rcx = slots_at(0) + LARGE_STACK * SLOT_SIZE; /* just behind it */
	states.registers.rsi = slots_at(0) + SLOT_SIZE;               /* further down */
	states_capture();
	assert_true(has_string(0));
	assert_false(has_string(1));
	states.registers.rdx = slots_at(0) + (LARGE_STACK - 1) * SLOT_SIZE;
	states_capture();
	assert_true(has_string(1) && has_string(2));
	/* Nobody runs a coroutine that is captured alone: registers say nothing of it. */
	snapshot_clear(states.process.snapshot);
	capture_parked((const uint64_t[]){ thread_at(0) }, 1);
	assert_false(has_string(0));
}

static void without_gc64_a_frames_function_leads_to_values(void **state)
{
	enum { UPVALUE = FREE_AT + 0xf000 };
	struct layout *layout = &states.vm.layout;

	(void)state;
	layout->gc64 = false;
	layout->GCupval_v = 8;
	layout->GCupval_tv = 16;
	layout->GCupval_size = 24;
	put_running(BASE_SLOT, BASE_SLOT + 2);
	put_large_stack(LARGE_STACK);
	put_frame(0, BASE_SLOT, put_function(0), 0x123);
	put(function_at(0) + (uint64_t)layout->GCfunc_nupvalues, 1, 1);
	put(function_at(0) + (uint64_t)layout->GCfuncL_uvptr, UPVALUE, 4);
	put(UPVALUE + (uint64_t)layout->GCupval_v, UPVALUE + 16, 4);
	put_string(0, 0);
	put_word(UPVALUE + 16, tagged(TAG_STR, string_at(0)));
	put_slot(0, 0, tagged(TAG_THREAD, thread_at(0)));
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	assert_non_null(function(0));
	assert_true(has_string(0));
}

static void only_strings_and_cdata_near_the_base_are_copied(void **state)
{
	(void)state;
	states.process.only_near_values = true;
	put_string(0, BASE_SLOT - FAR_FROM_BASE);
	put_string(1, BASE_SLOT + FAR_FROM_BASE - 1);
	put_string(2, BASE_SLOT - FAR_FROM_BASE - 1);
	put_string(3, BASE_SLOT + FAR_FROM_BASE);
	put_string(4, BASE_SLOT);
	put_slot(0, BASE_SLOT, tagged(TAG_TAB, string_at(4)));
	states_capture();
	assert_true(has_string(0) && has_string(1));
	assert_false(has_string(2) || has_string(3) || has_string(4));
	put_slot(0, BASE_SLOT, tagged(TAG_OF_CDATA, string_at(4)));
	states_capture();
	assert_true(is_copied(string_at(4), 16));
	/* Near the stack's ends there are fewer. */
	put_base(0, 10, 12);
	put_string(2, 1);
	states_capture();
	assert_true(has_string(2));
	put_base(0, LARGE_STACK - 2, LARGE_STACK);
	put_string(3, LARGE_STACK - 1);
	states_capture();
	assert_true(has_string(3));
}

static void a_thread_whose_base_is_elsewhere_has_no_values(void **state)
{
	(void)state;
	put_string(0, BASE_SLOT);
	put_base(0, LARGE_STACK + 1, LARGE_STACK + 1);
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	assert_false(has_string(0));
	states.process.only_near_values = true;
	put_string(0, LARGE_STACK - 1);
	states_capture();
	assert_false(has_string(0));
}

/*---- Code that was made at run time ----*/

static void code_in_no_module_is_copied_with_its_neighbours(void **state)
{
	enum {
		PAGE = FREE_AT + 7 * STATES_PAGE,
		FIRST = PAGE - 4 * STATES_PAGE,
		END = PAGE + 9 * STATES_PAGE
	};

	(void)state;
	states.registers.pc = PAGE + 0x123;
	states_capture();
	for (uint64_t at = FIRST; at < END; at += STATES_PAGE)
		assert_true(is_copied(at, STATES_PAGE));
	assert_false(is_copied(FIRST - 8, 8));
	assert_false(is_copied(END, 8));
	unmap(PAGE + STATES_PAGE);
	states_capture();
	assert_true(is_copied(PAGE, STATES_PAGE));
	assert_false(is_copied(PAGE + STATES_PAGE, 8));
}

static void code_of_a_module_is_not_copied(void **state)
{
	(void)state;
	states_capture();
	assert_false(is_copied(NATIVE_CODE, 8));
	states.registers.pc = VM_AT + 8;
	states_capture();
	assert_false(is_copied(VM_AT, 8));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, states_begin, states_end)
#define TEST_OF_VALUES(name) cmocka_unit_test_setup_teardown(name, begin_with_values, end_with_values)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_function_on_a_stack_is_captured_live_or_stale),
		TEST(functions_on_the_stacks_of_resumers_are_captured_too),
		TEST(only_slots_of_functions_are_asked_for_and_neighbours_once),
		TEST(without_gc64_any_slot_may_be_a_frames_function),
		TEST(a_slot_has_the_address_of_a_function),
		TEST(functions_of_a_large_stack_are_captured_in_parts),
		TEST(a_stack_that_is_unmapped_has_no_slots),
		TEST(coroutines_are_captured_as_they_are),
		TEST(functions_of_an_earlier_capture_do_not_count),
		TEST(so_many_coroutines_and_no_more),
		TEST_OF_VALUES(values_are_copied_only_if_they_are_wanted),
		TEST_OF_VALUES(slots_in_use_and_those_of_a_frame_above_are_copied),
		TEST_OF_VALUES(the_stack_is_in_use_as_far_as_registers_point_into_it),
		TEST_OF_VALUES(without_gc64_a_frames_function_leads_to_values),
		TEST_OF_VALUES(only_strings_and_cdata_near_the_base_are_copied),
		TEST_OF_VALUES(a_thread_whose_base_is_elsewhere_has_no_values),
		TEST(code_in_no_module_is_copied_with_its_neighbours),
		TEST(code_of_a_module_is_not_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
