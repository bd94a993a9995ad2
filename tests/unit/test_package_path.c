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
#include "tests/unit/made_up_lua.h"
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

/*---- Reading it ----*/

/* Words of the target: its global_State, tables, nodes, keys and the path. */
enum {
	G = 0,
	REGISTRY = 8,
	LOADED = 16,
	PACKAGE = 24,
	REGISTRY_NODES = 32,
	LOADED_NODES = 40,
	PACKAGE_NODES = 48,
	KEYS = 64,
	KEY_WORDS = 8,
	PATH = 128,
};

static struct made_up target;
static struct package_path path;

static uint64_t put_key(size_t index, const char *key)
{
	return put_string(&target, &made_up_gc64, KEYS + index * KEY_WORDS, key);
}

/* What is read is what is expected now, of a path that is this value. */
static void check_path(uint64_t value, const char *expected)
{
	put_node(&target, PACKAGE_NODES + NODE_WORDS, put_key(3, "path"), value);
	package_path_read(&target.memory, &made_up_gc64, at(G), &path);
	assert_non_null(path.text);
	assert_string_equal(path.text, expected);
}

static uint64_t put_path(const char *text)
{
	return put_string(&target, &made_up_gc64, PATH, text);
}

static int begin(void **state)
{
	const struct layout *layout = &made_up_gc64;

	(void)state;
	target = (struct made_up){ .memory = { .read_ranges = read_ranges } };
	target.words[G + 1] = put_table(&target, layout, REGISTRY, 0, 0, REGISTRY_NODES, 1);
	put_node(&target, REGISTRY_NODES, put_key(0, "_LOADED"),
		 put_table(&target, layout, LOADED, 0, 0, LOADED_NODES, 1));
	put_node(&target, LOADED_NODES, put_key(1, "package"),
		 put_table(&target, layout, PACKAGE, 0, 0, PACKAGE_NODES, 2));
	put_node(&target, PACKAGE_NODES, put_key(2, "cpath"), put_key(4, "/lib/?.so"));
	return 0;
}

static int end(void **state)
{
	(void)state;
	package_path_clear(&path);
	assert_null(path.text);
	return 0;
}

static void the_path_is_read_as_it_is_now(void **state)
{
	(void)state;
	check_path(put_path("./?.lua;/srv/app/?.lua"), "./?.lua;/srv/app/?.lua");
	assert_int_equal(path.table, at(PACKAGE));
	check_path(put_path("./?.lua"), "./?.lua");
	check_path(put_path(""), "");
}

static void what_cannot_be_read_stays_as_it_was(void **state)
{
	const uint64_t last = WORDS - 3;

	(void)state;
	check_path(put_path("./?.lua"), "./?.lua");
	check_path(UINT64_MAX, "./?.lua"); /* it is nil */
	assert_int_equal(path.table, 0);
	put_path("/other/?.lua");
	check_path(tagged(&made_up_gc64, TAG_TAB, at(PATH)), "./?.lua");
	check_path(tagged(&made_up_gc64, TAG_STR, at(WORDS)), "./?.lua");
	/* Its length can be read, and not its text. */
	target.words[last + 2] = 1;
	check_path(tagged(&made_up_gc64, TAG_STR, at(last)), "./?.lua");
	/* It is found again in another table. */
	check_path(put_path("/srv/?.lua"), "/srv/?.lua");
	target.words[LOADED_NODES] = UINT64_MAX;
	put_head(&target, PACKAGE, GCT_STRING);
	check_path(put_path("/?.lua"), "/srv/?.lua");
	check_path(put_path("/?.lua"), "/srv/?.lua");
}

/* Nothing but the key tells it. */
static void another_string_is_not_the_path(void **state)
{
	(void)state;
	put_node(&target, PACKAGE_NODES + NODE_WORDS, put_key(3, "config"), put_path("/;?"));
	package_path_read(&target.memory, &made_up_gc64, at(G), &path);
	assert_null(path.text);
	assert_int_equal(path.table, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_root_stands_before_the_mark),
		cmocka_unit_test(other_files_have_none),
		cmocka_unit_test(each_root_is_listed_once_while_there_is_room),
		cmocka_unit_test(lists_of_roots_are_joined_while_there_is_room),
		cmocka_unit_test(names_begin_below_the_root_of_the_target),
		cmocka_unit_test_setup_teardown(the_path_is_read_as_it_is_now, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_stays_as_it_was, begin, end),
		cmocka_unit_test_setup_teardown(another_string_is_not_the_path, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
