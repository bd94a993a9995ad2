/* SPDX-License-Identifier: MIT */
/* Lua stacks that LuaJIT is moving while the thread is held. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/made_up_states.h"
#include "unwind/capture/lua_moved.h"

enum {
	FRAME = C_STACK_AT + 0x800,
	SP = C_STACK_AT + 0x100,
	NATIVE_BYTES = 1024, /* of native stack, from its pointer on, where the address may be */
	OLD = 0,             /* threads whose stacks are the old and the new one; the former is the one */
	NEW = 1,
	HEAD_SLOTS = 6,
	FOOT_SLOTS = 2,
	BASE_SLOT = 6,
	TOP_SLOT = 9,
};

static struct lua_thread *moving(void)
{
	return &states.capture.threads[0];
}

static uint64_t first_slot(void)
{
	uint64_t value = 0;

	assert_int_equal(states.capture.thread_count, 1);
	assert_true(lua_thread_slot(moving(), moving()->stack, &value));
	return value;
}

/* The thread runs, with something in each slot of its stack. */
static void put_running(void)
{
	put_g(0, put_thread(OLD, 0, FRAME));
	put_cframe(FRAME, thread_at(OLD), 0, NATIVE_CODE);
	for (size_t i = 1; i < SLOTS; i++)
		put_slot(OLD, i, 1000 + i);
	put_frame(OLD, BASE_SLOT, put_c_function(0), (BASE_SLOT - 2) * SLOT_SIZE | FRAME_C);
	put_base(OLD, BASE_SLOT, TOP_SLOT);
	states.registers.sp = SP;
}

static uint64_t slot_of(size_t stack, size_t slot)
{
	uint64_t value;

	memcpy(&value, states.bytes + (slots_at(stack) - STATES_AT) + slot * SLOT_SIZE, sizeof(value));
	return value;
}

static void copy_slots(size_t from, size_t to)
{
	memcpy(states.bytes + (slots_at(to) - STATES_AT), states.bytes + (slots_at(from) - STATES_AT),
	       SLOTS * SLOT_SIZE);
}

/*---- The old one is being freed ----*/

/* The allocator has written its links over the ends of the old stack. */
static void put_freed(void)
{
	put_running();
	copy_slots(OLD, NEW);
	for (size_t i = 0; i < HEAD_SLOTS; i++)
		put_slot(OLD, i, FREE_AT + i * 8);
	for (size_t i = 0; i < FOOT_SLOTS; i++)
		put_slot(OLD, SLOTS - 1 - i, FREE_AT + 0x100);
}

static bool is_restored(void)
{
	states_capture();
	return first_slot() == tagged(TAG_THREAD, thread_at(OLD));
}

static void the_bottom_is_taken_from_the_new_stack(void **state)
{
	uint64_t value = 0;

	(void)state;
	put_freed();
	assert_false(is_restored()); /* nothing leads to it */
	states.registers.rax = slots_at(NEW);
	assert_true(is_restored());
	for (size_t i = 1; i < HEAD_SLOTS; i++) {
		assert_true(lua_thread_slot(moving(), slots_at(OLD) + i * SLOT_SIZE, &value));
		assert_int_equal(value, slot_of(NEW, i));
	}
	/* The foot stays as it is. */
	assert_true(lua_thread_slot(moving(), slots_at(OLD) + (SLOTS - 1) * SLOT_SIZE, &value));
	assert_int_equal(value, FREE_AT + 0x100);
}

static void the_native_stack_leads_to_the_new_one(void **state)
{
	static const uint64_t places[] = { SP, SP + NATIVE_BYTES - 8 };

	(void)state;
	put_freed();
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		put_word(places[i], slots_at(NEW));
		assert_true(is_restored());
		put_word(places[i], 0);
	}
	put_word(SP + NATIVE_BYTES, slots_at(NEW));
	assert_false(is_restored());
	put_word(SP - 8, slots_at(NEW));
	assert_false(is_restored());
	/* Beyond its C frame nothing of this is kept. */
	states.registers.sp = FRAME - 0x100;
	put_word(FRAME, slots_at(NEW));
	assert_false(is_restored());
	put_word(FRAME - 8, slots_at(NEW));
	assert_true(is_restored());
}

/* State 0 has called C code, which has called state 1. */
static void the_stack_of_a_state_that_another_one_called_is_restored_too(void **state)
{
	const struct lua_thread *thread;
	uint64_t value = 0;

	(void)state;
	lua_image_add(states.lua, g_at(1), &states.vm);
	put_freed();
	put_word(thread_at(OLD) + (uint64_t)states.vm.layout.L_glref, g_at(1));
	put_g(1, thread_at(OLD));
	put_g(0, put_thread(2, 0, FRAME + 0x100));
	put_cframe(FRAME + 0x100, thread_at(2), 0, NATIVE_CODE);
	states.registers.rax = slots_at(NEW);
	states_capture();
	assert_int_equal(states.capture.thread_count, 2);
	thread = capture_find_thread(&states.capture, thread_at(OLD));
	assert_non_null(thread);
	assert_true(lua_thread_slot(thread, slots_at(OLD), &value));
	assert_int_equal(value, tagged(TAG_THREAD, thread_at(OLD)));
}

static void a_stack_that_differs_elsewhere_is_not_its_copy(void **state)
{
	static const size_t same[] = { 1, HEAD_SLOTS - 1, SLOTS - FOOT_SLOTS, SLOTS - 1 };
	static const size_t others[] = { HEAD_SLOTS, 40, SLOTS - FOOT_SLOTS - 1 };

	(void)state;
	put_freed();
	states.registers.rax = slots_at(NEW);
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		put_slot(NEW, same[i], 77);
	assert_true(is_restored());
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		copy_slots(OLD, NEW);
		put_slot(NEW, 0, tagged(TAG_THREAD, thread_at(OLD)));
		assert_true(is_restored());
		put_slot(NEW, others[i], 77);
		assert_false(is_restored());
	}
	copy_slots(OLD, NEW); /* it does not begin with the thread */
	assert_false(is_restored());
	put_slot(NEW, 0, tagged(TAG_THREAD, thread_at(OLD)));
	states.registers.rax = slots_at(NEW) + 4;
	assert_false(is_restored());
	states.registers.rax = 0;
	states.registers.rbp = slots_at(NEW);
	assert_true(is_restored());
}

/* A larger free piece gets links to its children first, which are none. */
static void a_bottom_that_is_half_overwritten_is_restored(void **state)
{
	uint64_t value = 0;

	(void)state;
	put_running();
	copy_slots(OLD, NEW);
	states.registers.rdx = slots_at(NEW);
	put_slot(OLD, 2, 0);
	states_capture();
	assert_true(lua_thread_slot(moving(), slots_at(OLD) + 2 * SLOT_SIZE, &value));
	assert_int_equal(value, 0); /* a slot may well be 0 */
	put_slot(OLD, 3, 0);
	states_capture();
	assert_true(lua_thread_slot(moving(), slots_at(OLD) + 2 * SLOT_SIZE, &value));
	assert_int_equal(value, 1002);
	put_slot(OLD, 2, 5);
	states_capture();
	assert_true(lua_thread_slot(moving(), slots_at(OLD) + 3 * SLOT_SIZE, &value));
	assert_int_equal(value, 0);
}

/*---- The thread's fields are not adjusted yet ----*/

/* The thread already has the new stack, but L->base and L->top are in the old one. */
static void put_unadjusted(void)
{
	const struct layout *layout = &states.vm.layout;

	put_running();
	copy_slots(OLD, NEW);
	put_word(thread_at(OLD) + (uint64_t)layout->L_stack, slots_at(NEW));
	put_word(thread_at(OLD) + (uint64_t)layout->L_maxstack, slots_at(NEW) + SLOTS * SLOT_SIZE);
}

/* Its base after it was adjusted, if it was. */
static uint64_t adjusted_base(void)
{
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	lua_moved_adjust(states.process.snapshot, &states.registers, states.process.objects, moving());
	assert_int_equal(moving()->top - moving()->base, (TOP_SLOT - BASE_SLOT) * SLOT_SIZE);
	return moving()->base;
}

enum { UNADJUSTED = SLOTS_AT + BASE_SLOT * SLOT_SIZE };

static uint64_t new_base(void)
{
	return slots_at(NEW) + BASE_SLOT * SLOT_SIZE;
}

static void a_base_in_the_old_stack_is_adjusted(void **state)
{
	(void)state;
	put_unadjusted();
	assert_int_equal(adjusted_base(), UNADJUSTED); /* nobody knows by how much */
	states.registers.rbx = slots_at(OLD);
	assert_int_equal(adjusted_base(), new_base());
	states.registers.rbx = slots_at(NEW) - slots_at(OLD);
	assert_int_equal(adjusted_base(), new_base());
	states.registers.rbx = slots_at(NEW) - slots_at(OLD) + SLOT_SIZE; /* no frame begins there */
	assert_int_equal(adjusted_base(), UNADJUSTED);
	/* A called function need not keep this one. */
	states.registers.rbx = 0;
	states.registers.rax = slots_at(OLD);
	assert_int_equal(adjusted_base(), UNADJUSTED);
	put_word(SP + NATIVE_BYTES - 8, slots_at(OLD));
	assert_int_equal(adjusted_base(), new_base());
	put_word(SP + NATIVE_BYTES - 8, 0);
	put_word(SP + NATIVE_BYTES, slots_at(OLD));
	assert_int_equal(adjusted_base(), UNADJUSTED);
	put_word(SP, slots_at(OLD));
	assert_int_equal(adjusted_base(), new_base());
	states.registers.sp = FRAME;
	put_word(FRAME, slots_at(OLD));
	assert_int_equal(adjusted_base(), UNADJUSTED);
}

static void a_base_in_doubt_stays(void **state)
{
	(void)state;
	put_unadjusted();
	states.registers.rbx = slots_at(OLD);
	states.registers.rbp = slots_at(NEW) - slots_at(OLD); /* they agree */
	assert_int_equal(adjusted_base(), new_base());
	/* Another frame might be there as well. */
	put_frame(NEW, BASE_SLOT + 10, function_at(0), 10 * SLOT_SIZE | FRAME_C);
	states.registers.rbp = slots_at(NEW) - slots_at(OLD) + 10 * SLOT_SIZE;
	assert_int_equal(adjusted_base(), UNADJUSTED);
	put_frame(NEW, BASE_SLOT + 10, function_at(0), 77 * SLOT_SIZE | FRAME_C); /* leads nowhere */
	assert_int_equal(adjusted_base(), new_base());
	put_frame(NEW, BASE_SLOT + 10, FREE_AT, 10 * SLOT_SIZE | FRAME_C); /* no function */
	assert_int_equal(adjusted_base(), new_base());
}

static void a_base_that_is_right_stays(void **state)
{
	(void)state;
	put_unadjusted();
	put_frame(NEW, BASE_SLOT + 10, function_at(0), 10 * SLOT_SIZE | FRAME_C);
	put_base(NEW, BASE_SLOT, TOP_SLOT);
	put_word(thread_at(OLD) + (uint64_t)states.vm.layout.L_base, new_base());
	put_word(thread_at(OLD) + (uint64_t)states.vm.layout.L_top,
		 new_base() + (TOP_SLOT - BASE_SLOT) * SLOT_SIZE);
	states.registers.rbx = 10 * SLOT_SIZE;
	assert_int_equal(adjusted_base(), new_base());
}

static void a_thread_without_a_c_frame_is_not_moved(void **state)
{
	(void)state;
	put_unadjusted();
	states.registers.rbx = slots_at(OLD);
	put_word(thread_at(OLD) + (uint64_t)states.vm.layout.L_cframe, 0);
	assert_int_equal(adjusted_base(), UNADJUSTED);
	put_freed();
	put_word(thread_at(OLD) + (uint64_t)states.vm.layout.L_cframe, 0);
	states.registers.rax = slots_at(NEW);
	assert_false(is_restored());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, states_begin, states_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_bottom_is_taken_from_the_new_stack),
		TEST(the_native_stack_leads_to_the_new_one),
		TEST(the_stack_of_a_state_that_another_one_called_is_restored_too),
		TEST(a_stack_that_differs_elsewhere_is_not_its_copy),
		TEST(a_bottom_that_is_half_overwritten_is_restored),
		TEST(a_base_in_the_old_stack_is_adjusted),
		TEST(a_base_in_doubt_stays),
		TEST(a_base_that_is_right_stays),
		TEST(a_thread_without_a_c_frame_is_not_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
