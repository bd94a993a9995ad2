/* SPDX-License-Identifier: MIT */
/* Which part of a file's path is where package.path has a program look for its modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "output/labels/label_table.h"
#include "output/labels/module_path.h"
#include "output/labels/short_label.h"
#include "output/formats/pprof_name.h"
#include "unwind/lua/package_path.h"

static void assert_root(const char *templates, const char *file, const char *root)
{
	assert_int_equal(package_path_root(templates, file), strlen(root));
	assert_memory_equal(file, root, strlen(root));
}

static void a_root_stands_before_the_mark(void **state)
{
	(void)state;
	assert_root("/srv/app/?.lua", "/srv/app/kong/acl.lua", "/srv/app/");
	assert_root("./?.lua;/srv/app/?/init.lua", "/srv/app/kong/init.lua", "/srv/app/");
	assert_root("./?.lua;/srv/app/?.lua", "./kong/acl.lua", "./");
	assert_root("lib/?.lua", "lib/acl.lua", "lib/");
	assert_root("/srv/app/?/?.lua", "/srv/app/acl/acl.lua", "/srv/app/");
	assert_root("/srv/app/v_?.lua", "/srv/app/v_acl.lua", "/srv/app/");
	/* the nearest root */
	assert_root("/srv/app/?.lua;/srv/app/lua/?.lua;/srv/?.lua", "/srv/app/lua/acl.lua", "/srv/app/lua/");
}

static void other_files_have_none(void **state)
{
	(void)state;
	assert_root("/srv/app/?.lua", "/srv/application/acl.lua", "");
	assert_root("/srv/app/?.lua", "/srv/app/", "");
	assert_root("/srv/app/init.lua", "/srv/app/init.lua", "");
	assert_root("?.lua", "acl.lua", "");
	assert_root("/?.lua", "/acl.lua", "");
	assert_root(";;?;", "/acl.lua", "");
	assert_root("", "/acl.lua", "");
}

static void each_root_is_listed_once_while_there_is_room(void **state)
{
	char list[24] = "";

	(void)state;
	package_path_add_roots("./?.lua;/srv/app/?.lua;/srv/app/?/init.lua;?.lua;;/x", list, sizeof(list));
	assert_string_equal(list, "./;/srv/app/;");
	package_path_add_roots("/srv/app/?.lua;/srv/longer/?.lua;/srv/a/?.lua", list, sizeof(list));
	assert_string_equal(list, "./;/srv/app/;/srv/a/;");
}

static void lists_of_roots_are_joined_while_there_is_room(void **state)
{
	char list[24] = "/srv/app/;";

	(void)state;
	package_path_join_roots("", list, sizeof(list));
	assert_string_equal(list, "/srv/app/;");
	package_path_join_roots("/srv/a/;/srv/app/;/srv/longer/;./;/x/", list, sizeof(list));
	assert_string_equal(list, "/srv/app/;/srv/a/;./;");
}

static const struct function acl = {
	.kind = FRAME_LUA,
	.name = "check",
	.file = "@/srv/app-1.2/\u00fc \x01/acl.lua",
	.firstline = 12,
	.root = sizeof("@/srv/app-1.2/") - 1,
};

static void names_begin_below_the_root_of_the_target(void **state)
{
	struct label_table table = { 0 };
	char module[MODULE_PATH_SIZE], text[LABEL_TEXT_SIZE], name[FRAME_TEXT_SIZE];
	struct function usual = { .file = "@/srv/app/lualib/acl.lua", .root = sizeof("@/srv/app/") - 1 };

	(void)state;
	module_path(&acl, module);
	assert_string_equal(module, "\u00fc \x01/acl");
	assert_int_equal(label_table_add(&table, &acl, 0), 0);
	short_label(label_table_find(&table, &acl, 0), 100, text);
	assert_string_equal(text, "check \u00fc \\x01/acl.lua:12");
	label_table_clear(&table);
	assert_string_equal(pprof_name(&acl, name), "\u00fc \\x01/acl.check:12");
	/* It counts before what only looks like a root. */
	module_path(&usual, module);
	assert_string_equal(module, "lualib/acl");
	usual.root = 0;
	module_path(&usual, module);
	assert_string_equal(module, "acl");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_root_stands_before_the_mark),
		cmocka_unit_test(other_files_have_none),
		cmocka_unit_test(each_root_is_listed_once_while_there_is_room),
		cmocka_unit_test(lists_of_roots_are_joined_while_there_is_room),
		cmocka_unit_test(names_begin_below_the_root_of_the_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
