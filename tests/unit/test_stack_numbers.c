/* SPDX-License-Identifier: MIT */
/* Stacks and their numbers: each has one, however many there are, and keeps it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "output/recording/stack_numbers.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);
#define FAILING_REALLOCARRAY
#include "tests/unit/failing_allocation.h"

enum { MANY = 5000 }; /* the table grows several times */

/* Each is unlike the one before it by another member. */
static struct stack_key key_of(uint32_t number)
{
	return (struct stack_key){
		.caller = number / 4 + (number % 4 == 0),
		.function = number / 4 + (number % 4 == 1),
		.line = number / 4 + (number % 4 == 2),
		.certainty = number / 4 + (number % 4 == 3),
	};
}

static uint32_t find(const struct stack_numbers *numbers, uint32_t number)
{
	const struct stack_key key = key_of(number);

	return stack_numbers_find(numbers, &key);
}

static int add(struct stack_numbers *numbers, uint32_t number)
{
	const struct stack_key key = key_of(number);

	return stack_numbers_add(numbers, &key);
}

static void stacks_are_numbered_from_one_on_and_keep_their_numbers(void **state)
{
	struct stack_numbers numbers = { 0 };

	(void)state;
	for (uint32_t number = 1; number <= MANY; number++) {
		assert_int_equal(find(&numbers, number), 0);
		assert_int_equal(add(&numbers, number), 0);
		assert_int_equal(numbers.count, number);
		assert_int_equal(find(&numbers, 1), 1);
		assert_int_equal(find(&numbers, number), number);
	}
	for (uint32_t number = 1; number <= MANY; number++)
		assert_int_equal(find(&numbers, number), number);
	assert_int_equal(find(&numbers, MANY + 1), 0);
	stack_numbers_clear(&numbers);
	assert_int_equal(numbers.count, 0);
	assert_int_equal(find(&numbers, 1), 0);
	assert_int_equal(add(&numbers, 2), 0);
	assert_int_equal(find(&numbers, 2), 1);
	stack_numbers_clear(&numbers);
}

static void where_memory_is_short_nothing_changes(void **state)
{
	struct stack_numbers numbers = { 0 };
	size_t failures = 0;

	(void)state;
	for (uint32_t number = 1; number <= MANY; number++)
		for (size_t before = 0; numbers.count < number; before++) {
			int error;

			allocation_fails_after(before);
			error = add(&numbers, number);
			assert_int_equal(error, allocation_failed() ? -ENOMEM : 0);
			assert_int_equal(numbers.count, error ? number - 1 : number);
			assert_int_equal(find(&numbers, number), error ? 0 : number);
			failures += error != 0;
		}
	assert_true(failures > 3);
	for (uint32_t number = 1; number <= MANY; number++)
		assert_int_equal(find(&numbers, number), number);
	stack_numbers_clear(&numbers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_numbered_from_one_on_and_keep_their_numbers),
		cmocka_unit_test(where_memory_is_short_nothing_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
