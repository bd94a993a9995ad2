/* SPDX-License-Identifier: MIT */
/* Which module or plugin a Lua file belongs to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "output/labels/module_path.h"

static void assert_module(const char *file, const char *expected)
{
	char module[MODULE_PATH_SIZE];

	assert_int_equal(module_path(&(struct function){ .file = file }, module), strlen(expected));
	assert_string_equal(module, expected);
}

static void a_package_root_is_no_part_of_a_module(void **state)
{
	(void)state;
	assert_module("/usr/local/share/lua/5.1/resty/core/regex.lua", "resty/core/regex");
	assert_module("/usr/share/lua/5.1/cjson/util.lua", "cjson/util");
	assert_module("/usr/lib/lua/5.1/socket/http.lua", "socket/http");
	assert_module("/usr/share/luajit-2.1.0-beta3/jit/dump.lua", "jit/dump");
	assert_module("/usr/local/openresty/lualib/resty/redis.lua", "resty/redis");
	assert_module("/usr/local/openresty/site/lualib/my/thing.lua", "my/thing");
	assert_module("/srv/app/lua_modules/share/lua/5.1/pl/init.lua", "pl");
	assert_module("./app/router.lua", "app/router");
	assert_module("share/lua/5.1/a.lua", "a");
	/* the last root in the path is the nearest one */
	assert_module("/opt/lualib/share/lua/5.1/a/b.lua", "a/b");
}

static void what_only_looks_like_a_root_stays(void **state)
{
	(void)state;
	assert_module("/srv/lua/5.1/a.lua", "/srv/lua/5.1/a");
	assert_module("/srv/mylualib/a.lua", "/srv/mylualib/a");
	assert_module("/srv/share/lua/jit/a.lua", "/srv/share/lua/jit/a");
	assert_module("/srv/share/lua/6.1/a.lua", "/srv/share/lua/6.1/a");
	assert_module("/srv/share/lua/5-1/a.lua", "/srv/share/lua/5-1/a");
	assert_module("/srv/share/lua/5.x/a.lua", "/srv/share/lua/5.x/a");
	assert_module("/srv/share/lua/ab1/a.lua", "/srv/share/lua/ab1/a");
	assert_module("/srv/share/lua/5./1.lua", "/srv/share/lua/5./1");
	assert_module("/srv/share/luajit-/a.lua", "/srv/share/luajit-/a");
	assert_module("/srv/share/luajut-2/a.lua", "/srv/share/luajut-2/a");
	assert_module("/srv/luajit-2/a.lua", "/srv/luajit-2/a");
	assert_module("/srv/a/lua/5.1/b.lua", "/srv/a/lua/5.1/b");
	assert_module("lua/5.1/a.lua", "lua/5.1/a");
	assert_module("5.1/a.lua", "5.1/a");
	assert_module("/home/me/app/main.lua", "/home/me/app/main");
	assert_module("main.lua", "main");
}

static void files_of_a_plugin_are_the_plugin(void **state)
{
	(void)state;
	assert_module("/usr/local/share/lua/5.1/kong/plugins/rate-limiting/handler.lua",
		      "kong/plugins/rate-limiting");
	assert_module("kong/plugins/rate-limiting/policies/init.lua", "kong/plugins/rate-limiting");
	assert_module("/opt/custom/kong/plugins/own/access.lua", "kong/plugins/own");
	assert_module("/usr/local/share/lua/5.1/apisix/plugins/limit-req.lua", "apisix/plugins/limit-req");
	assert_module("/usr/local/apisix/apisix/plugins/limit-req.lua", "apisix/plugins/limit-req");
	assert_module("/usr/local/apisix/apisix/plugins/ext-plugin/init.lua", "apisix/plugins/ext-plugin");
	assert_module("kong/plugins/outer/plugins/inner.lua", "kong/plugins/outer");
	/* the server's own code is not a plugin */
	assert_module("/usr/local/share/lua/5.1/kong/runloop/handler.lua", "kong/runloop/handler");
	assert_module("/plugins/a.lua", "/plugins/a");
}

static void compiled_files_and_init_files_are_their_module(void **state)
{
	(void)state;
	assert_module("/usr/share/lua/5.1/pl/init.lua", "pl");
	assert_module("/srv/a.ljbc", "/srv/a");
	assert_module("@/srv/a.luac", "/srv/a");
	assert_module("init.lua", "init");
	assert_module(".lua", ".lua");
}

static void inline_code_has_its_own_name(void **state)
{
	(void)state;
	assert_module("=content_by_lua(nginx.conf:24)", "content_by_lua(nginx.conf:24)");
	assert_module("=[string \"local a/b.lua\"]", "[string \"local a/b.lua\"]");
	assert_module("", "");
}

static void a_long_name_keeps_its_end(void **state)
{
	char file[2 * MODULE_PATH_SIZE], module[MODULE_PATH_SIZE];

	(void)state;
	memset(file, 'a', sizeof(file));
	strcpy(file + sizeof(file) - strlen("b.lua") - 1, "b.lua");
	assert_int_equal(module_path(&(struct function){ .file = file }, module), MODULE_PATH_SIZE - 1);
	assert_string_equal(module + MODULE_PATH_SIZE - 3, "ab");
}

static void time_belongs_to_the_innermost_lua_file(void **state)
{
	const struct function gsub = { .kind = FRAME_BUILTIN, .name = "string.gsub" };
	const struct function libc = { .kind = FRAME_NATIVE, .name = "memcpy", .file = "memcpy.S" };
	const struct function nameless = { .kind = FRAME_LUA };
	const struct function plugin = { .kind = FRAME_LUA, .file = "kong/plugins/a/handler.lua" };
	const struct function core = { .kind = FRAME_LUA, .file = "kong/init.lua" };
	const struct frame frames[] = {
		{ .function = &libc },   { .function = &gsub }, { .function = &nameless },
		{ .function = &plugin }, { .function = &core },
	};

	(void)state;
	assert_ptr_equal(module_path_owner(frames, 5), &plugin);
	assert_ptr_equal(module_path_owner(&frames[3], 2), &plugin);
	assert_null(module_path_owner(frames, 3));
	assert_null(module_path_owner(NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_package_root_is_no_part_of_a_module),
		cmocka_unit_test(what_only_looks_like_a_root_stays),
		cmocka_unit_test(files_of_a_plugin_are_the_plugin),
		cmocka_unit_test(compiled_files_and_init_files_are_their_module),
		cmocka_unit_test(inline_code_has_its_own_name),
		cmocka_unit_test(a_long_name_keeps_its_end),
		cmocka_unit_test(time_belongs_to_the_innermost_lua_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
