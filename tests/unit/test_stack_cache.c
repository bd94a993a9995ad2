/* SPDX-License-Identifier: MIT */
/* Recent stacks: which are found again, which make room for others, and how much they hold together. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "memory/scatter.h"
#include "output/recording/stack_cache.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

static struct stack_cache cache;

static int begin(void **state)
{
	(void)state;
	return stack_cache_init(&cache);
}

static int end(void **state)
{
	(void)state;
	stack_cache_clear(&cache);
	return 0;
}

static bool take(uint64_t number, size_t frame_count)
{
	size_t place = stack_cache_place(&cache, number);

	assert_in_range(place, 0, STACK_CACHE_PLACES - 1);
	return stack_cache_take(&cache, place, number, frame_count);
}

static bool is_kept(uint64_t number)
{
	return cache.places[stack_cache_place(&cache, number)].number == number;
}

static void stacks_are_found_by_their_number(void **state)
{
	(void)state;
	for (uint64_t number = 1; number <= 1000; number++)
		assert_true(take(number, number % 3));
	for (uint64_t number = 1; number <= 1000; number++) {
		const struct cached_stack *stack = &cache.places[stack_cache_place(&cache, number)];

		assert_int_equal(stack->number, number);
		assert_int_equal(stack->frame_count, number % 3);
		assert_int_equal(stack->frames != NULL, number % 3 != 0);
	}
	assert_false(is_kept(1001));
	stack_cache_forget(&cache);
	for (uint64_t number = 1; number <= 1000; number++)
		assert_false(is_kept(number));
	assert_true(take(1, STACK_CACHE_FRAMES));
}

/* A recording of any length replaces stacks all the time. */
static void a_place_that_is_taken_again_gives_back_its_frames(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++)
		assert_true(take(7, STACK_CACHE_FRAMES / 4));
	assert_true(take(8, STACK_CACHE_FRAMES - STACK_CACHE_FRAMES / 4));
	assert_false(take(9, 1));
}

static void stacks_that_do_not_fit_are_not_kept(void **state)
{
	(void)state;
	assert_true(take(1, STACK_CACHE_FRAMES));
	assert_false(take(2, 1));
	assert_false(is_kept(2));
	assert_true(is_kept(1));
	/* One without frames always does. */
	assert_true(take(3, 0));
	assert_true(take(1, STACK_CACHE_FRAMES - 1));
	assert_true(take(2, 1));
	/* The stack that was in the place is gone all the same. */
	assert_false(take(2, 2));
	assert_false(is_kept(2));
	assert_true(take(2, 1));
}

enum { NEAR = 8 };

/* So few stacks touch few pages, here and in the arrays of users. */
static void places_are_given_out_from_the_first_on(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		for (uint64_t number = 1; number <= 100; number++) {
			size_t place = stack_cache_place(&cache, number);

			assert_int_equal(place, number - 1);
			assert_true(stack_cache_take(&cache, place, number, 1));
		}
		for (uint64_t number = 1; number <= 100; number++)
			assert_int_equal(stack_cache_place(&cache, number), number - 1);
		stack_cache_forget(&cache);
	}
}

static void there_is_a_place_for_every_number(void **state)
{
	bool *given = calloc(STACK_CACHE_PLACES, sizeof(*given));
	size_t count = 0;

	(void)state;
	assert_non_null(given);
	for (uint64_t number = 1; count < STACK_CACHE_PLACES; number++) {
		size_t place = stack_cache_place(&cache, number);

		assert_in_range(place, 0, STACK_CACHE_PLACES - 1);
		assert_true(stack_cache_take(&cache, place, number, 0));
		assert_true(is_kept(number));
		count += !given[place];
		given[place] = true;
	}
	assert_int_equal(cache.place_count, STACK_CACHE_PLACES);
	free(given);
}

/* Numbers that are looked for from the last slot on, and so in the first slots, too. */
static void list_neighbours(uint64_t ret_numbers[static NEAR + 1])
{
	uint64_t number = 1;

	for (size_t count = 0; count <= NEAR; number++)
		if (scatter(number) % STACK_CACHE_PLACES == STACK_CACHE_PLACES - 1)
			ret_numbers[count++] = number;
}

static void a_new_stack_takes_the_place_of_another_if_all_near_are_taken(void **state)
{
	uint64_t numbers[NEAR + 1];
	size_t kept = 0;

	(void)state;
	list_neighbours(numbers);
	for (size_t i = 0; i < NEAR; i++)
		assert_true(take(numbers[i], 1));
	for (size_t i = 0; i < NEAR; i++)
		assert_true(is_kept(numbers[i]));
	assert_true(take(numbers[NEAR], 1));
	assert_true(is_kept(numbers[NEAR]));
	for (size_t i = 0; i < NEAR; i++)
		kept += is_kept(numbers[i]);
	assert_int_equal(kept, NEAR - 1);
}

/* Numbers are taken from places that became empty before they take another's. */
static void an_empty_place_is_taken_first(void **state)
{
	uint64_t numbers[NEAR + 1];
	size_t place;

	(void)state;
	list_neighbours(numbers);
	for (size_t i = 0; i < NEAR; i++)
		assert_true(take(numbers[i], 0));
	place = stack_cache_place(&cache, numbers[NEAR - 1]);
	assert_false(stack_cache_take(&cache, place, numbers[NEAR], STACK_CACHE_FRAMES + 1));
	assert_int_equal(stack_cache_place(&cache, numbers[NEAR]), place);
}

static void where_memory_is_short_no_stack_is_kept(void **state)
{
	(void)state;
	assert_true(take(1, 10));
	allocation_fails_after(0);
	assert_false(take(1, 20));
	assert_true(allocation_failed());
	assert_false(is_kept(1));
	assert_true(take(1, STACK_CACHE_FRAMES));
	stack_cache_clear(&cache);
	allocation_fails_after(0);
	assert_int_equal(stack_cache_init(&cache), -ENOMEM);
	assert_true(allocation_failed());
	stack_cache_forget(&cache);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(stacks_are_found_by_their_number),
		TEST(a_place_that_is_taken_again_gives_back_its_frames),
		TEST(stacks_that_do_not_fit_are_not_kept),
		TEST(places_are_given_out_from_the_first_on),
		TEST(there_is_a_place_for_every_number),
		TEST(a_new_stack_takes_the_place_of_another_if_all_near_are_taken),
		TEST(an_empty_place_is_taken_first),
		TEST(where_memory_is_short_no_stack_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
