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

/* Strings are compared with the member they stand in, and no string at all differs from an empty one. */
static void functions_that_differ_in_one_member_are_two(void **state)
{
	static const struct function all[] = {
		{ .kind = FRAME_LUA, .firstline = 1, .name = "a", .file = "b", .module = "c" },
		{ .kind = FRAME_BUILTIN, .firstline = 1, .name = "a", .file = "b", .module = "c" },
		{ .kind = FRAME_LUA, .firstline = 2, .name = "a", .file = "b", .module = "c" },
		{ .kind = FRAME_LUA, .firstline = 1, .name = "A", .file = "b", .module = "c" },
		{ .kind = FRAME_LUA, .firstline = 1, .name = "a", .file = "B", .module = "c" },
		{ .kind = FRAME_LUA, .firstline = 1, .name = "a", .file = "b", .module = "C" },
		{ .kind = FRAME_LUA, .firstline = 1, .name = "a", .file = "b" },
		{ .kind = FRAME_LUA, .firstline = 1, .name = "a", .file = "b", .module = "" },
		{ .kind = FRAME_LUA, .firstline = 1, .name = "a", .module = "b" },
		{ .kind = FRAME_LUA, .firstline = 1, .file = "a", .module = "b" },
		{ .kind = FRAME_LUA, .firstline = 1, .name = "ab", .file = "", .module = "c" },
		{ .kind = FRAME_LUA, .firstline = 1, .name = "", .file = "ab", .module = "c" },
		{ .kind = FRAME_LUA, .firstline = 1, .file = "a", .module = "\001b" },
		{ .kind = FRAME_LUA, .firstline = 1, .name = "\001a", .module = "b" },
	};
	enum { COUNT = sizeof(all) / sizeof(all[0]) };
	const struct function *interned[COUNT];
	struct functions *functions = functions_new();

	(void)state;
	for (int i = 0; i < COUNT; i++) {
		interned[i] = functions_intern(functions, &all[i]);
		assert_non_null(interned[i]);
		for (int j = 0; j < i; j++)
			assert_ptr_not_equal(interned[i], interned[j]);
	}
	for (int i = 0; i < COUNT; i++)
		assert_ptr_equal(functions_intern(functions, &all[i]), interned[i]);
	functions_free(functions);
}

static void the_table_owns_a_copy_of_each_member(void **state)
{
	struct functions *functions = functions_new();
	char name[] = "name", file[] = "@file.lua", module[] = "module.so";
	const struct function *interned = functions_intern(
		functions, &(struct function){ FRAME_NATIVE, 7, name, file, module, .root = 3 });
	const struct function *bare = functions_intern(functions, &(struct function){ .kind = FRAME_VM });

	(void)state;
	name[0] = file[0] = module[0] = '?';
	assert_non_null(interned);
	assert_int_equal(interned->kind, FRAME_NATIVE);
	assert_int_equal(interned->firstline, 7);
	assert_string_equal(interned->name, "name");
	assert_string_equal(interned->file, "@file.lua");
	assert_string_equal(interned->module, "module.so");
	assert_int_equal(interned->root, 3);
	assert_non_null(bare);
	assert_null(bare->name);
	assert_null(bare->file);
	assert_null(bare->module);
	functions_free(functions);
}

static void what_is_allocated_is_a_function_of_its_own_kind(void **state)
{
	struct functions *functions = functions_new();
	const struct function *table = functions_allocated(functions, "table");

	(void)state;
	assert_non_null(table);
	assert_int_equal(table->kind, FRAME_ALLOCATED);
	assert_string_equal(table->name, "table");
	assert_ptr_equal(functions_allocated(functions, "table"), table);
	assert_ptr_not_equal(functions_allocated(functions, "string"), table);
	assert_ptr_not_equal(functions_intern(functions, &(struct function){ FRAME_LUA, .name = "table" }),
			     table);
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

static void a_definition_is_shared_by_kind_file_and_line(void **state)
{
	const struct function function = { .kind = FRAME_LUA, .name = "f", .file = "@a.lua", .firstline = 5 };
	struct function other = function, unknown = { .kind = FRAME_LUA, .firstline = 5 }, alike = unknown;

	(void)state;
	other.name = "g";
	assert_true(functions_share_definition(&function, &other));
	assert_true(functions_share_definition(NULL, NULL));
	assert_false(functions_share_definition(&function, NULL));
	assert_false(functions_share_definition(NULL, &function));
	assert_true(functions_share_definition(&unknown, &unknown));
	assert_false(functions_share_definition(&unknown, &alike));
	assert_false(functions_share_definition(&unknown, &function));
	assert_false(functions_share_definition(&function, &unknown));
	other.firstline = 6;
	assert_false(functions_share_definition(&function, &other));
	other = function;
	other.kind = FRAME_C_FUNCTION;
	assert_false(functions_share_definition(&function, &other));
	other = function;
	other.file = "@b.lua";
	assert_false(functions_share_definition(&function, &other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_functions_are_one),
		cmocka_unit_test(functions_that_differ_in_one_member_are_two),
		cmocka_unit_test(the_table_owns_a_copy_of_each_member),
		cmocka_unit_test(what_is_allocated_is_a_function_of_its_own_kind),
		cmocka_unit_test(a_root_is_no_part_of_an_identity),
		cmocka_unit_test(a_definition_is_shared_by_kind_file_and_line),
		cmocka_unit_test(what_is_kept_stays_and_all_else_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
