/* SPDX-License-Identifier: MIT */
/* What a coroutine waits for, by the names that C functions have with and without symbols. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/nginx/lua_wait.h"

static const struct {
	const char *function, *wait;
	enum lua_wait_end end;
} cases[] = {
	/* Where the module has symbols, in Lua's tables, and by the field that they are called by. */
	{ "ngx_http_lua_ngx_req_read_body", "client body", LUA_WAIT_ENDS_OUTSIDE },
	{ "ngx.req.read_body", "client body", LUA_WAIT_ENDS_OUTSIDE },
	{ "read_body", "client body", LUA_WAIT_ENDS_OUTSIDE },
	{ "ngx_http_lua_ngx_location_capture", "subrequest", LUA_WAIT_ENDS_OUTSIDE },
	{ "ngx.location.capture", "subrequest", LUA_WAIT_ENDS_OUTSIDE },
	{ "capture", "subrequest", LUA_WAIT_ENDS_OUTSIDE },
	{ "ngx_http_lua_ngx_location_capture_multi", "subrequest", LUA_WAIT_ENDS_OUTSIDE },
	{ "ngx.location.capture_multi", "subrequest", LUA_WAIT_ENDS_OUTSIDE },
	{ "capture_multi", "subrequest", LUA_WAIT_ENDS_OUTSIDE },
	{ "ngx_http_lua_uthread_wait", "light thread", LUA_WAIT_ENDS_INSIDE },
	{ "ngx.thread.wait", "light thread", LUA_WAIT_ENDS_INSIDE },
	{ "wait", "light thread", LUA_WAIT_ENDS_INSIDE },
	{ "ngx.sleep", "sleep", LUA_WAIT_ENDS_OUTSIDE },
	{ "ngx.exit", "Lua", LUA_WAIT_ENDS_UNKNOWN },
	{ "recapture", "Lua", LUA_WAIT_ENDS_UNKNOWN },
};

static void the_function_tells_the_wait(void **state)
{
	const struct lua_wait no_socket = { .thread = 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct function function = { .kind = FRAME_C_FUNCTION, .name = cases[i].function };
		const struct frame frame = { .function = &function };
		char name[REQUEST_WAIT_BYTES];

		assert_false(lua_wait_name(NULL, &no_socket, &frame, 1, name));
		assert_string_equal(name, cases[i].wait);
		assert_int_equal(lua_wait_end(&no_socket, &frame, 1), cases[i].end);
	}
}

/* A Lua function waits for nothing by its name. */
static void only_functions_of_c_count(void **state)
{
	const struct function function = { .kind = FRAME_LUA, .name = "read_body", .file = "@a.lua" };
	const struct frame frame = { .function = &function };
	const struct lua_wait no_socket = { .thread = 1 };
	char name[REQUEST_WAIT_BYTES];

	(void)state;
	assert_false(lua_wait_name(NULL, &no_socket, &frame, 1, name));
	assert_string_equal(name, "Lua");
	assert_int_equal(lua_wait_end(&no_socket, &frame, 1), LUA_WAIT_ENDS_UNKNOWN);
}

/* ngx.pipe needs a patch of nginx that OpenResty has and Debian has not. */
static void libraries_in_lua_are_known_by_their_files(void **state)
{
	static const struct {
		const char *file, *wait;
	} files[] = {
		{ "@/usr/share/lua/5.1/ngx/semaphore.lua", "semaphore" },
		{ "@/usr/local/openresty/lualib/ngx/pipe.lua", "process" },
		{ "@/srv/mypipe.lua", "Lua" },
	};
	const struct function yield = { .kind = FRAME_BUILTIN, .name = "coroutine.yield" };
	const struct lua_wait no_socket = { .thread = 1 };
	char name[REQUEST_WAIT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const struct function waits = { .kind = FRAME_LUA, .name = "wait", .file = files[i].file };
		const struct frame frames[] = { { .function = &yield }, { .function = &waits } };

		assert_false(lua_wait_name(NULL, &no_socket, frames, 2, name));
		assert_string_equal(name, files[i].wait);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_function_tells_the_wait),
		cmocka_unit_test(only_functions_of_c_count),
		cmocka_unit_test(libraries_in_lua_are_known_by_their_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
