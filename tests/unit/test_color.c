/* SPDX-License-Identifier: MIT */
/* What a comparison calls a change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/views/color.h"

/* Of so many samples of equal weight, on either side. */
static enum color change(uint64_t before, uint64_t now, uint64_t samples)
{
	return color_of_change(&(struct color_share){ 10 * before, 10 * samples, before, samples, false },
			       &(struct color_share){ 10 * now, 10 * samples, now, samples, false });
}

/* The same weights, counted. */
static enum color counted(uint64_t before, uint64_t now)
{
	return color_of_change(&(struct color_share){ before, 1000, 1, 10, true },
			       &(struct color_share){ now, 2000, 1, 20, true });
}

static void what_is_counted_is_never_chance(void **state)
{
	(void)state;
	assert_int_equal(counted(100, 100), COLOR_SAME);
	assert_int_equal(counted(0, 0), COLOR_SAME);
	assert_int_equal(counted(100, 105), COLOR_SAME);
	assert_int_equal(counted(100, 150), COLOR_MORE);
	assert_int_equal(counted(100, 200), COLOR_MUCH_MORE);
	assert_int_equal(counted(150, 100), COLOR_LESS);
	assert_int_equal(counted(1, 0), COLOR_MUCH_LESS);
}

static void what_could_be_chance_is_no_change(void **state)
{
	(void)state;
	assert_int_equal(change(20, 30, 100), COLOR_SAME); /* three times the standard error is 18 */
	assert_int_equal(change(200, 300, 1000), COLOR_MORE);
	assert_int_equal(change(300, 200, 1000), COLOR_LESS);
	assert_int_equal(change(1, 3, 1000), COLOR_SAME);
}

static void a_sure_change_that_is_small_is_none(void **state)
{
	(void)state;
	assert_int_equal(change(500000, 540000, 1000000), COLOR_SAME);
	assert_int_equal(change(500000, 560000, 1000000), COLOR_MORE);
}

static void half_and_double_stand_out(void **state)
{
	(void)state;
	assert_int_equal(change(200, 400, 1000), COLOR_MUCH_MORE);
	assert_int_equal(change(200, 399, 1000), COLOR_MORE);
	assert_int_equal(change(400, 200, 1000), COLOR_MUCH_LESS);
	assert_int_equal(change(0, 100, 1000), COLOR_MUCH_MORE);
	assert_int_equal(change(100, 0, 1000), COLOR_MUCH_LESS);
}

static void nothing_to_compare_with_is_no_change(void **state)
{
	(void)state;
	assert_int_equal(change(0, 0, 0), COLOR_SAME);
	assert_int_equal(change(1000, 1000, 1000), COLOR_SAME);
}

static void a_lua_function_is_compiled_if_more_than_half_of_it_is(void **state)
{
	static const struct function heavy = { .kind = FRAME_LUA }, gsub = { .kind = FRAME_BUILTIN };

	(void)state;
	for (uint64_t compiled = 0; compiled <= 10; compiled++) {
		assert_int_equal(color_of_node(&(struct profile_node){
					 .function = &heavy, .total_ns = 10, .compiled_ns = compiled }),
				 compiled > 5 ? COLOR_COMPILED : COLOR_LUA);
		assert_int_equal(color_of_node(&(struct profile_node){
					 .function = &gsub, .total_ns = 10, .compiled_ns = compiled }),
				 COLOR_BUILTIN);
	}
	assert_int_equal(color_of_node(&(struct profile_node){ .total_ns = 10 }), COLOR_ALL);
}

/* The data tells them apart by nothing else. */
static void letters_are_unique(void **state)
{
	(void)state;
	for (int i = 0; i < COLOR_COUNT; i++)
		for (int j = 0; j < i; j++)
			assert_int_not_equal(color_letter((enum color)i), color_letter((enum color)j));
	for (int i = 0; i < VM_STATE_COUNT; i++)
		for (int j = 0; j < i; j++)
			assert_int_not_equal(color_state_letter((enum vm_state)i),
					     color_state_letter((enum vm_state)j));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_could_be_chance_is_no_change),
		cmocka_unit_test(what_is_counted_is_never_chance),
		cmocka_unit_test(a_sure_change_that_is_small_is_none),
		cmocka_unit_test(half_and_double_stand_out),
		cmocka_unit_test(nothing_to_compare_with_is_no_change),
		cmocka_unit_test(a_lua_function_is_compiled_if_more_than_half_of_it_is),
		cmocka_unit_test(letters_are_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
