/* SPDX-License-Identifier: MIT */
/* Steps of a walk down a thread's frames, by their links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/made_up_calls.h"
#include "unwind/lua/lua_walk.h"

enum { COPY = INNER + 8 /* the base of a vararg function's copy of its frame */ };

static struct lua_walk walk;

static uint64_t delta(size_t slots, unsigned int type)
{
	return slots * SLOT_SIZE | type;
}

/* Function 2 is a vararg function, and runs in a copy of its frame. Stand there. */
static void stand(uint64_t link)
{
	const uint64_t address = thread_at(0);

	put_thread(0, 0, 0);
	put_three_frames(0, put_function(2));
	put_frame(0, COPY, function_at(2), link);
	put_base(0, COPY, COPY + 4);
	snapshot_clear(states.process.snapshot);
	capture_coroutines(&states.capture, &states.process, lua_image_global(states.lua, 0), &address, 1);
	assert_int_equal(states.capture.thread_count, 1);
	walk = (struct lua_walk){ .thread = &states.capture.threads[0],
				  .objects = states.process.objects,
				  .base = base_of(0, COPY),
				  .pc = bytecode_at(2, 4) };
}

static void check_broken(uint64_t link)
{
	stand(link);
	assert_int_equal(lua_walk_step(&walk), LUA_STEP_BROKEN);
	assert_int_equal(walk.base, base_of(0, COPY));
	assert_int_equal(walk.pc, bytecode_at(2, 4));
}

static void a_vararg_functions_call_is_one_frame_further_down(void **state)
{
	(void)state;
	stand(delta(COPY - INNER, FRAME_VARG));
	assert_int_equal(lua_walk_step(&walk), LUA_STEP_CALL);
	assert_int_equal(walk.base, base_of(0, MIDDLE));
	assert_int_equal(walk.pc, bytecode_at(1, IN_MIDDLE));
	assert_int_equal(lua_walk_step(&walk), LUA_STEP_CALL);
	assert_int_equal(walk.base, base_of(0, OUTER));
	assert_int_equal(walk.pc, bytecode_at(0, IN_OUTER));
	assert_int_equal(lua_walk_step(&walk), LUA_STEP_FROM_C);
	assert_int_equal(walk.base, base_of(0, BOTTOM));
	assert_int_equal(walk.pc, 0);
	assert_int_equal(lua_walk_step(&walk), LUA_STEP_BOTTOM);
	assert_int_equal(walk.base, base_of(0, BOTTOM));
}

static void the_call_may_come_from_c(void **state)
{
	(void)state;
	stand(delta(COPY - OUTER, FRAME_VARG));
	assert_int_equal(lua_walk_step(&walk), LUA_STEP_FROM_C);
	assert_int_equal(walk.base, base_of(0, BOTTOM));
}

static void the_call_may_be_protected(void **state)
{
	static const unsigned int types[] = { FRAME_PCALL, FRAME_PCALLH };

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		stand(delta(COPY - MIDDLE, types[i]));
		assert_int_equal(lua_walk_step(&walk), LUA_STEP_PROTECTED);
		assert_int_equal(walk.base, base_of(0, MIDDLE));
		assert_int_equal(walk.pc, 0);
	}
}

/* Of a link that leads nowhere the walk says so, and stays. */
static void a_link_that_leads_nowhere_is_broken(void **state)
{
	(void)state;
	check_broken(delta(0, FRAME_VARG));
	check_broken(delta(SLOTS, FRAME_VARG));
	check_broken(delta(COPY - BOTTOM, FRAME_VARG)); /* nothing has called the bottom */
	check_broken(delta(0, FRAME_C));
	check_broken(delta(COPY - BOTTOM + 1, FRAME_C));
	check_broken(delta(SLOTS, FRAME_PCALL));
	check_broken(delta(SLOTS, FRAME_CONT));
	check_broken(bytecode_at(3, 1)); /* of no function */
}

static void a_copy_has_no_copy(void **state)
{
	(void)state;
	stand(delta(COPY - INNER, FRAME_VARG));
	put_slot(0, INNER - 1, delta(INNER - MIDDLE, FRAME_VARG));
	states.capture.threads[0].slots = &states.bytes[slots_at(0) - STATES_AT];
	assert_int_equal(lua_walk_step(&walk), LUA_STEP_BROKEN);
	assert_int_equal(walk.base, base_of(0, COPY));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, states_begin, states_end)
	const struct CMUnitTest tests[] = {
		TEST(a_vararg_functions_call_is_one_frame_further_down),
		TEST(the_call_may_come_from_c),
		TEST(the_call_may_be_protected),
		TEST(a_link_that_leads_nowhere_is_broken),
		TEST(a_copy_has_no_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
