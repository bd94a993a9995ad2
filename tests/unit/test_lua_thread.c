/* SPDX-License-Identifier: MIT */
/* What a Lua thread's stack gives, wherever a pointer that is none leads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/lua/lua_thread.h"
#include "unwind/lua/luajit.h"

enum { STACK = 0x10000, SLOTS = 4 };

static const struct layout layout = { .gc64 = true };
static const uint64_t slots[SLOTS] = { 10, 11, 12, 13 };
static const struct lua_thread thread = {
	.layout = &layout,
	.stack = STACK,
	.stack_end = STACK + sizeof(slots),
	.slots = (const uint8_t *)slots,
};

static void test_slots_of_the_stack(void **state)
{
	uint64_t value = 0;

	(void)state;
	for (size_t i = 0; i < SLOTS; i++) {
		assert_true(lua_thread_slot(&thread, STACK + i * SLOT_SIZE, &value));
		assert_int_equal(value, slots[i]);
	}
	assert_true(lua_thread_link(&thread, STACK + SLOT_SIZE, &value));
	assert_int_equal(value, slots[0]);
}

static void test_nothing_lies_outside_of_it(void **state)
{
	static const uint64_t addresses[] = {
		0,
		1,
		STACK - SLOT_SIZE,
		STACK - 1,
		STACK + 1,
		STACK + sizeof(slots) - 1,
		STACK + sizeof(slots),
		-SLOT_SIZE,
		-1,
		UINT64_MAX / 2 + 1,
	};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		assert_false(lua_thread_slot(&thread, addresses[i], &value));
	for (uint64_t base = 0; base <= 2 * SLOT_SIZE; base++) {
		assert_false(lua_thread_link(&thread, base, &value));
		assert_false(lua_thread_function(&thread, base, &value));
	}
}

static void frames_begin_at_slots_of_the_stack(void **state)
{
	struct layout gc32 = { .gc64 = false };
	struct lua_thread other = thread;

	(void)state;
	assert_int_equal(lua_thread_bottom(&thread), STACK + 2 * SLOT_SIZE);
	assert_true(lua_thread_contains_base(&thread, STACK + 2 * SLOT_SIZE));
	assert_true(lua_thread_contains_base(&thread, STACK + sizeof(slots)));
	assert_false(lua_thread_contains_base(&thread, STACK + SLOT_SIZE));
	assert_false(lua_thread_contains_base(&thread, STACK + sizeof(slots) + SLOT_SIZE));
	assert_false(lua_thread_contains_base(&thread, STACK + 3 * SLOT_SIZE - 1));
	other.layout = &gc32;
	assert_int_equal(lua_thread_bottom(&other), STACK + SLOT_SIZE);
	assert_true(lua_thread_contains_base(&other, STACK + SLOT_SIZE));
	assert_false(lua_thread_contains_base(&other, STACK));
}

static void a_frame_has_its_function_below_its_base(void **state)
{
	const uint64_t object = 0x12345678;
	const struct layout gc32 = { .gc64 = false };
	uint64_t words[SLOTS] = { 0 }, found = 0;
	struct lua_thread other = thread;

	(void)state;
	other.slots = (const uint8_t *)words;
	words[0] = (uint64_t)TAG_FUNC << 47 | object;
	words[1] = 0x1122334455667788;
	assert_true(lua_thread_function(&other, STACK + 2 * SLOT_SIZE, &found));
	assert_int_equal(found, object);
	assert_true(lua_thread_link(&other, STACK + 2 * SLOT_SIZE, &found));
	assert_int_equal(found, words[1]);
	words[0] = (uint64_t)TAG_THREAD << 47 | object;
	found = 0;
	assert_true(lua_thread_function(&other, STACK + 2 * SLOT_SIZE, &found));
	assert_int_equal(found, object);
	words[0] = (uint64_t)TAG_TAB << 47 | object;
	assert_false(lua_thread_function(&other, STACK + 2 * SLOT_SIZE, &found));
	/* One slot has both without GC64. */
	other.layout = &gc32;
	assert_true(lua_thread_function(&other, STACK + 2 * SLOT_SIZE, &found));
	assert_int_equal(found, 0x55667788);
	assert_true(lua_thread_link(&other, STACK + 2 * SLOT_SIZE, &found));
	assert_int_equal(found, 0x11223344);
	/* What was not captured cannot be read. */
	other.slots = NULL;
	assert_false(lua_thread_function(&other, STACK + 2 * SLOT_SIZE, &found));
	assert_false(lua_thread_link(&other, STACK + 2 * SLOT_SIZE, &found));
}

/*---- A lua_State ----*/

enum {
	AT = 0x5000,
	G = 0x4000,
	STATE_BYTES = 0x80,
	STATE_GCT = 9,
	STATE_STATUS = 11,
	STATE_GLREF = 16,
	STATE_BASE = 32,
	STATE_TOP = 40,
	STATE_MAXSTACK = 48,
	STATE_STACK = 56,
	STATE_CFRAME = 80,
	STATE_STACKSIZE = 88,
	STATE_EXDATA = 96,
	STATE_EXDATA2 = 104,
	/* LuaJIT allocates some slots above maxstack (lj_state.c: LJ_STACK_EXTRA). */
	USED_SLOTS = 40,
	ALL_SLOTS = 48,
};

static struct vm_code vm;
static struct global_state global = { .g = G, .vm = &vm };
static uint8_t bytes[STATE_BYTES];
static struct lua_thread loaded;

static void put(size_t offset, uint64_t value, size_t size)
{
	memcpy(bytes + offset, &value, size);
}

static int begin_state(void **state)
{
	(void)state;
	vm.layout = (struct layout){ .gc64 = true,
				     .GChead_gct = STATE_GCT,
				     .L_status = STATE_STATUS,
				     .L_glref = STATE_GLREF,
				     .L_base = STATE_BASE,
				     .L_top = STATE_TOP,
				     .L_maxstack = STATE_MAXSTACK,
				     .L_stack = STATE_STACK,
				     .L_cframe = STATE_CFRAME,
				     .L_stacksize = STATE_STACKSIZE,
				     .L_exdata = STATE_EXDATA,
				     .L_exdata2 = STATE_EXDATA2 };
	memset(bytes, 0, sizeof(bytes));
	put(STATE_GCT, GCT_THREAD, 1);
	put(STATE_GLREF, G, 8);
	put(STATE_BASE, STACK + 3 * SLOT_SIZE, 8);
	put(STATE_TOP, STACK + 5 * SLOT_SIZE, 8);
	put(STATE_STACK, STACK, 8);
	put(STATE_MAXSTACK, STACK + USED_SLOTS * SLOT_SIZE, 8);
	put(STATE_STACKSIZE, ALL_SLOTS, 4);
	put(STATE_CFRAME, 0x7fff1000, 8);
	put(STATE_STATUS, LUA_YIELD, 1);
	put(STATE_EXDATA, 0xabc0, 8);
	put(STATE_EXDATA2, 0xdef0, 8);
	return 0;
}

static bool loads(void)
{
	loaded = (struct lua_thread){ .address = 1 };
	if (lua_thread_load(&loaded, &global, AT, bytes))
		return true;
	assert_int_equal(loaded.address, 1);
	return false;
}

static void a_thread_has_what_its_state_says(void **state)
{
	(void)state;
	assert_true(loads());
	assert_int_equal(loaded.address, AT);
	assert_ptr_equal(loaded.global, &global);
	assert_ptr_equal(loaded.layout, &vm.layout);
	assert_int_equal(loaded.base, STACK + 3 * SLOT_SIZE);
	assert_int_equal(loaded.top, STACK + 5 * SLOT_SIZE);
	assert_int_equal(loaded.stack, STACK);
	assert_int_equal(loaded.stack_end, STACK + ALL_SLOTS * SLOT_SIZE);
	assert_int_equal(loaded.cframe, 0x7fff1000);
	assert_int_equal(loaded.status, LUA_YIELD);
	assert_int_equal(loaded.exdata, 0xabc0);
	assert_int_equal(loaded.exdata2, 0xdef0);
	assert_null(loaded.slots);
	/* The low bits of a C frame are flags. */
	put(STATE_CFRAME, 0x7fff1000 | CFRAME_FLAGS, 8);
	assert_true(loads());
	assert_int_equal(loaded.cframe, 0x7fff1000);
	/* Not every build has fields for OpenResty's data. */
	vm.layout.L_exdata = vm.layout.L_exdata2 = -1;
	assert_true(loads());
	assert_int_equal(loaded.exdata, 0);
	assert_int_equal(loaded.exdata2, 0);
}

static void without_gc64_references_have_32_bits(void **state)
{
	static const size_t references[] = { STATE_GLREF, STATE_BASE, STATE_TOP, STATE_MAXSTACK,
					     STATE_STACK };

	(void)state;
	for (size_t i = 0; i < sizeof(references) / sizeof(references[0]); i++)
		put(references[i] + 4, UINT32_MAX, 4);
	assert_false(loads());
	vm.layout.gc64 = false;
	assert_true(loads());
	assert_int_equal(loaded.base, STACK + 3 * SLOT_SIZE);
	assert_int_equal(loaded.top, STACK + 5 * SLOT_SIZE);
	assert_int_equal(loaded.stack, STACK);
	assert_int_equal(loaded.stack_end, STACK + ALL_SLOTS * SLOT_SIZE);
}

static void other_objects_are_no_threads(void **state)
{
	(void)state;
	put(STATE_GCT, GCT_THREAD + 1, 1);
	assert_false(loads());
	put(STATE_GCT, GCT_THREAD, 1);
	assert_true(loads());
	put(STATE_GLREF, G + 8, 8); /* another state's */
	assert_false(loads());
}

static void a_stack_is_where_one_can_be(void **state)
{
	enum { SLOTS_MAX = LUA_STACK_BYTES_MAX / SLOT_SIZE };

	(void)state;
	put(STATE_STACK, 0, 8);
	put(STATE_MAXSTACK, USED_SLOTS * SLOT_SIZE, 8);
	assert_false(loads());
	put(STATE_STACK, STACK + 4, 8);
	put(STATE_MAXSTACK, STACK + USED_SLOTS * SLOT_SIZE, 8);
	assert_false(loads());
	put(STATE_STACK, STACK, 8);
	put(STATE_MAXSTACK, STACK - SLOT_SIZE, 8);
	assert_false(loads());
	put(STATE_MAXSTACK, STACK, 8);
	assert_true(loads());
	/* Its size is bounded. */
	put(STATE_STACKSIZE, SLOTS_MAX, 4);
	assert_true(loads());
	assert_int_equal(loaded.stack_end - loaded.stack, LUA_STACK_BYTES_MAX);
	put(STATE_STACKSIZE, SLOTS_MAX + 1, 4);
	assert_false(loads());
	put(STATE_STACKSIZE, ALL_SLOTS, 4);
	put(STATE_MAXSTACK, STACK + LUA_STACK_BYTES_MAX, 8);
	assert_true(loads());
	put(STATE_MAXSTACK, STACK + LUA_STACK_BYTES_MAX + SLOT_SIZE, 8);
	assert_false(loads());
}

/* Its size is stored last when it grows. */
static void a_stack_that_grows_reaches_to_its_new_end(void **state)
{
	(void)state;
	put(STATE_STACKSIZE, USED_SLOTS - 8, 4);
	assert_true(loads());
	assert_int_equal(loaded.stack_end, STACK + USED_SLOTS * SLOT_SIZE);
	put(STATE_STACKSIZE, USED_SLOTS, 4);
	assert_true(loads());
	assert_int_equal(loaded.stack_end, STACK + USED_SLOTS * SLOT_SIZE);
	put(STATE_STACKSIZE, USED_SLOTS + 1, 4);
	assert_true(loads());
	assert_int_equal(loaded.stack_end, STACK + (USED_SLOTS + 1) * SLOT_SIZE);
}

static void a_coroutine_is_in_one_state(void **state)
{
	enum { CUR_L = AT + 0x100, ERROR = 2 };

	(void)state;
	/* It has a C frame while it runs, or waits for one that it has resumed. */
	assert_true(loads());
	assert_int_equal(lua_thread_state(&loaded, AT), COROUTINE_RUNNING);
	assert_int_equal(lua_thread_state(&loaded, CUR_L), COROUTINE_NORMAL);
	assert_int_equal(lua_thread_state(&loaded, 0), COROUTINE_ACTIVE);
	loaded.cframe = 0;
	assert_int_equal(lua_thread_state(&loaded, CUR_L), COROUTINE_SUSPENDED);
	assert_int_equal(lua_thread_state(&loaded, AT), COROUTINE_SUSPENDED);
	/* Never resumed: a function is on a stack without frames. */
	loaded.status = 0;
	loaded.base = lua_thread_bottom(&loaded);
	assert_int_equal(lua_thread_state(&loaded, CUR_L), COROUTINE_NOT_STARTED);
	loaded.base += SLOT_SIZE;
	assert_int_equal(lua_thread_state(&loaded, CUR_L), COROUTINE_DEAD);
	loaded.base = loaded.top = lua_thread_bottom(&loaded);
	assert_int_equal(lua_thread_state(&loaded, CUR_L), COROUTINE_DEAD);
	loaded.top += SLOT_SIZE;
	loaded.status = ERROR;
	assert_int_equal(lua_thread_state(&loaded, CUR_L), COROUTINE_DEAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots_of_the_stack),
		cmocka_unit_test(test_nothing_lies_outside_of_it),
		cmocka_unit_test(frames_begin_at_slots_of_the_stack),
		cmocka_unit_test(a_frame_has_its_function_below_its_base),
		cmocka_unit_test_setup(a_thread_has_what_its_state_says, begin_state),
		cmocka_unit_test_setup(without_gc64_references_have_32_bits, begin_state),
		cmocka_unit_test_setup(other_objects_are_no_threads, begin_state),
		cmocka_unit_test_setup(a_stack_is_where_one_can_be, begin_state),
		cmocka_unit_test_setup(a_stack_that_grows_reaches_to_its_new_end, begin_state),
		cmocka_unit_test_setup(a_coroutine_is_in_one_state, begin_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
