/* SPDX-License-Identifier: MIT */
/* Which instruction the interpreter's registers stand for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "unwind/lua/luajit.h"
#include "unwind/stack/lua_top.h"

enum { BYTECODE = 0x20000, INSTRUCTIONS = 8, STACK = 0x10000, SLOTS = 16, BASE = STACK + 4 * SLOT_SIZE };

static const struct proto proto = { .bc = BYTECODE, .sizebc = INSTRUCTIONS };
static const struct function_object function = { .pc = BYTECODE, .proto = &proto };
static const struct layout layout = { .gc64 = true };
static struct global_state global;
static const struct lua_thread thread = {
	.global = &global,
	.layout = &layout,
	.base = BASE,
	.stack = STACK,
	.stack_end = STACK + SLOTS * SLOT_SIZE,
};

INSTEAD_OF(lua_walk_activation);

/* The function runs at BASE, and nowhere else. */
bool __wrap_lua_walk_activation(const struct lua_walk *walk, struct lua_activation *ret_activation)
{
	if (walk->base != BASE)
		return false;
	*ret_activation = (struct lua_activation){ .function = &function };
	return true;
}

/* The instruction if the interpreter's PC is this. */
static uint64_t instruction_at(uint64_t pc)
{
	const struct vm_registers vm = { .base = BASE, .pc = pc };
	const struct lua_running running = { .thread = &thread };
	struct lua_walk walk = { 0 };

	assert_true(lua_top_by_registers(&running, &vm, &walk));
	assert_int_equal(walk.base, BASE);
	return walk.pc;
}

static void pc_is_past_the_instruction(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= INSTRUCTIONS; i++)
		assert_int_equal(instruction_at(BYTECODE + i * BYTECODE_SIZE),
				 BYTECODE + (i - 1) * BYTECODE_SIZE);
	/* A function that begins has executed none. */
	assert_int_equal(instruction_at(BYTECODE), BYTECODE);
}

/* vm_hotcall sets the lowest bit, which tells a call from a loop to the compiler. */
static void the_mark_of_a_hot_call_is_no_part_of_it(void **state)
{
	(void)state;
	for (uint64_t i = 0; i <= INSTRUCTIONS; i++)
		assert_int_equal(instruction_at((BYTECODE + i * BYTECODE_SIZE) | 1),
				 instruction_at(BYTECODE + i * BYTECODE_SIZE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pc_is_past_the_instruction),
		cmocka_unit_test(the_mark_of_a_hot_call_is_no_part_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
