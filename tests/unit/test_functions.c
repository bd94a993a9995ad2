/* SPDX-License-Identifier: MIT */
/* Functions: each once, for as long as somebody needs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "output/sample/functions.h"

enum { MANY = 1000 };

static const struct function *intern(struct functions *functions, int number)
{
	char name[32];
	struct function function = { .kind = FRAME_LUA, .name = name, .file = "@test.lua", .firstline = 1 };
	const struct function *interned;

	snprintf(name, sizeof(name), "function_%d", number);
	interned = functions_intern(functions, &function);
	assert_non_null(interned);
	assert_string_equal(interned->name, name);
	return interned;
}

static void equal_functions_are_one(void **state)
{
	struct functions *functions = functions_new();

	(void)state;
	assert_ptr_equal(intern(functions, 1), intern(functions, 1));
	assert_ptr_not_equal(intern(functions, 1), intern(functions, 2));
	functions_free(functions);
}

static void a_root_is_no_part_of_an_identity(void **state)
{
	struct functions *functions = functions_new();
	const struct function without = { .kind = FRAME_LUA, .file = "@lib/a.lua" };
	struct function with = without, beyond = { .kind = FRAME_LUA, .file = "@a.lua", .root = 6 };
	const struct function *interned = functions_intern(functions, &without);

	(void)state;
	with.root = 5;
	assert_ptr_equal(functions_intern(functions, &with), interned);
	assert_int_equal(interned->root, 0);
	functions_set_root(interned, 5);
	assert_int_equal(interned->root, 5);
	functions_set_root(interned, 10); /* as long as the file */
	assert_int_equal(interned->root, 5);
	assert_int_equal(functions_intern(functions, &beyond)->root, 0);
	functions_free(functions);
}

static void what_is_kept_stays_and_all_else_goes(void **state)
{
	struct functions *functions = functions_new();
	const struct function *kept = intern(functions, MANY / 2);
	size_t one = functions_size(functions);

	(void)state;
	for (int i = 0; i < MANY; i++)
		intern(functions, i);
	assert_true(functions_size(functions) > MANY / 2 * one);
	functions_keep(kept);
	functions_keep(NULL);
	functions_keep(lost_function(LOST_OUT_OF_MEMORY));
	functions_drop_others(functions);
	assert_int_equal(functions_size(functions), one);
	assert_ptr_equal(intern(functions, MANY / 2), kept);
	for (int i = 0; i < MANY; i++)
		intern(functions, i);
	/* It was kept once only. */
	functions_drop_others(functions);
	assert_int_equal(functions_size(functions), 0);
	functions_free(functions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_functions_are_one),
		cmocka_unit_test(a_root_is_no_part_of_an_identity),
		cmocka_unit_test(what_is_kept_stays_and_all_else_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
