/* SPDX-License-Identifier: MIT */
/* What a Lua thread's stack gives, wherever a pointer that is none leads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots_of_the_stack),
		cmocka_unit_test(test_nothing_lies_outside_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
