/* SPDX-License-Identifier: MIT */
/* Names whose end tells functions apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "output/formats/pprof_name.h"

static void assert_name(struct function function, const char *expected)
{
	char text[FRAME_TEXT_SIZE];

	assert_string_equal(pprof_name(&function, text), expected);
}

static void lua_functions_stand_behind_their_module(void **state)
{
	(void)state;
	assert_name((struct function){ .kind = FRAME_LUA,
				       .name = "handler",
				       .file = "@/usr/local/share/lua/5.1/kong/plugins/acl/handler.lua",
				       .firstline = 12 },
		    "kong/plugins/acl/handler.handler:12");
	assert_name((struct function){ .kind = FRAME_LUA, .file = "@test.lua", .firstline = 5 },
		    "test.function:5");
	assert_name(
		(struct function){ .kind = FRAME_LUA, .name = "main chunk", .file = "@/srv/app/main.lua" },
		"/srv/app/main.main chunk");
	assert_name((struct function){ .kind = FRAME_LUA,
				       .name = "main chunk",
				       .file = "=content_by_lua(nginx.conf:24)" },
		    "content_by_lua(nginx.conf:24).main chunk");
	assert_name(
		(struct function){
			.kind = FRAME_TRACE, .name = "trace#2", .file = "@test.lua", .firstline = 8 },
		"test.trace#2:8");
	assert_name((struct function){ .kind = FRAME_LUA, .name = "heavy" }, "heavy");
}

static void files_of_one_plugin_stay_apart(void **state)
{
	(void)state;
	assert_name((struct function){ .kind = FRAME_LUA,
				       .name = "check",
				       .file = "@/usr/share/lua/5.1/kong/plugins/acl/groups.lua",
				       .firstline = 3 },
		    "kong/plugins/acl/groups.check:3");
}

static void other_functions_have_no_dots_of_files(void **state)
{
	(void)state;
	assert_name((struct function){ .kind = FRAME_BUILTIN, .name = "string.gsub" }, "string.gsub");
	assert_name((struct function){ .kind = FRAME_NATIVE, .name = "sqrt", .module = "libm.so.6" },
		    "sqrt [libm]");
	assert_name((struct function){ .kind = FRAME_C_FUNCTION, .name = "sqrt" }, "sqrt");
	assert_name((struct function){ .kind = FRAME_VM_WORK, .name = "growing a table" },
		    "[vm: growing a table]");
	assert_name((struct function){ .kind = FRAME_VM }, "[vm]");
}

static void odd_names_are_bounded_and_escaped(void **state)
{
	static char name[5000], file[5000];
	char text[FRAME_TEXT_SIZE];

	(void)state;
	memset(name, '\033', sizeof(name) - 1);
	memset(file, '.', sizeof(file) - 1);
	file[0] = '@';
	pprof_name(
		&(struct function){ .kind = FRAME_LUA, .name = name, .file = file, .firstline = UINT32_MAX },
		text);
	assert_in_range(strlen(text), 1000, FRAME_TEXT_SIZE - 1);
	assert_null(strchr(text, '\033'));
	assert_string_equal(text + strlen(text) - strlen(":4294967295"), ":4294967295");
	assert_name((struct function){ .kind = FRAME_LUA, .name = "f", .file = "" }, ".f");
	assert_name((struct function){ .kind = FRAME_LUA, .name = "f", .file = "@.lua" }, ".lua.f");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lua_functions_stand_behind_their_module),
		cmocka_unit_test(files_of_one_plugin_stay_apart),
		cmocka_unit_test(other_functions_have_no_dots_of_files),
		cmocka_unit_test(odd_names_are_bounded_and_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
