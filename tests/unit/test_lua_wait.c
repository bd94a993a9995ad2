/* SPDX-License-Identifier: MIT */
/* What a coroutine waits for, by the names that C functions have with and without symbols. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

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

/* What the function works on may stand above, as symbols tell it. Further up, it is not what waits. */
static void native_functions_above_do_not_hide_it(void **state)
{
	const struct function native = { .kind = FRAME_NATIVE, .name = "ngx_http_lua_sleep_handler" };
	const struct function function = { .kind = FRAME_C_FUNCTION, .name = "ngx.sleep" };
	const struct lua_wait no_socket = { .thread = 1 };
	char name[REQUEST_WAIT_BYTES];

	(void)state;
	for (size_t above = 0; above < 6; above++) {
		struct frame frames[6];

		for (size_t i = 0; i < 6; i++)
			frames[i] = (struct frame){ .function = i < above ? &native : &function };
		assert_false(lua_wait_name(NULL, &no_socket, frames, above, name));
		assert_string_equal(name, "Lua");
		lua_wait_name(NULL, &no_socket, frames, above + (above < 6), name);
		assert_string_equal(name, above <= 4 ? "sleep" : "Lua");
	}
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

static void a_socket_is_named_by_what_it_does_and_its_peer(void **state)
{
	static const struct {
		const char *function;
		enum cosocket_state state;
		enum connection_wait limit;
		bool has_sent, with_names;
		const char *peer, *wait;
	} sockets[] = {
		{ "connect", COSOCKET_OPEN, 0, false, false, "10.0.0.1:80", "socket connect: 10.0.0.1:80" },
		{ "setpeername", COSOCKET_OPEN, 0, false, false, "[::1]:53", "socket connect: [::1]:53" },
		{ "send", COSOCKET_OPEN, 0, false, false, "", "socket send: -" },
		{ "receive", COSOCKET_OPEN, 0, false, false, "a.local:6379", "socket receive: -" },
		{ "receiveany", COSOCKET_OPEN, 0, false, true, "a.local:6379",
		  "socket receive: a.local:6379" },
		/* Any name: by the time limit that is set. */
		{ "f", COSOCKET_OPEN, CONNECTION_WAIT_READ, false, false, "", "socket receive: -" },
		{ "f", COSOCKET_OPEN, CONNECTION_WAIT_WRITE, false, false, "", "socket connect: -" },
		{ "f", COSOCKET_OPEN, CONNECTION_WAIT_WRITE, true, false, "", "socket send: -" },
		{ "f", COSOCKET_OPEN, CONNECTION_WAIT_DELAY, true, false, "", "socket: -" },
		{ "connect", COSOCKET_QUEUED, 0, false, true, "a:1", "socket pool: a:1" },
		{ "connect", COSOCKET_RESOLVING, 0, false, true, "a:1", "socket DNS: a:1" },
		{ "receive", COSOCKET_CLIENT, 0, false, false, "", "client read" },
		{ "send", COSOCKET_CLIENT, 0, false, false, "", "client write" },
		{ "f", COSOCKET_CLIENT, CONNECTION_WAIT_WRITE, false, false, "", "client write" },
		{ "f", COSOCKET_CLIENT, CONNECTION_WAIT_NONE, false, false, "", "client" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++) {
		const struct function function = { .kind = FRAME_C_FUNCTION, .name = sockets[i].function };
		const struct frame frame = { .function = &function };
		struct lua_wait wait = { .socket.state = sockets[i].state,
					 .limit = sockets[i].limit,
					 .has_sent = sockets[i].has_sent,
					 .with_names = sockets[i].with_names };
		char name[REQUEST_WAIT_BYTES];

		snprintf(wait.socket.name, sizeof(wait.socket.name), "%s", sockets[i].peer);
		assert_int_equal(lua_wait_name(NULL, &wait, &frame, 1, name),
				 sockets[i].state != COSOCKET_CLIENT);
		assert_string_equal(name, sockets[i].wait);
		assert_int_equal(lua_wait_end(&wait, &frame, 1), LUA_WAIT_ENDS_OUTSIDE);
	}
}

/* It is where the connection is, whatever the program asked for. */
static void the_address_of_a_peer_is_shown_in_place_of_its_name(void **state)
{
	const struct sockaddr_in internet = { .sin_family = AF_INET,
					      .sin_port = htons(6379),
					      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr_un file = { .sun_family = AF_UNIX, .sun_path = "/run/a" };
	const struct function function = { .kind = FRAME_C_FUNCTION, .name = "receive" };
	const struct frame frame = { .function = &function };
	struct lua_wait wait = { .socket = { .state = COSOCKET_OPEN, .name = "a:1" }, .with_names = true };
	char name[REQUEST_WAIT_BYTES];

	(void)state;
	memcpy(wait.socket.address, &internet, sizeof(internet));
	wait.socket.address_length = sizeof(internet);
	lua_wait_name(NULL, &wait, &frame, 1, name);
	assert_string_equal(name, "socket receive: 127.0.0.1:6379");
	wait.socket.address_length = offsetof(struct sockaddr_un, sun_path) + strlen(file.sun_path);
	memcpy(wait.socket.address, &file, wait.socket.address_length);
	lua_wait_name(NULL, &wait, &frame, 1, name);
	assert_string_equal(name, "socket receive: unix:/run/a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_function_tells_the_wait),
		cmocka_unit_test(only_functions_of_c_count),
		cmocka_unit_test(native_functions_above_do_not_hide_it),
		cmocka_unit_test(libraries_in_lua_are_known_by_their_files),
		cmocka_unit_test(a_socket_is_named_by_what_it_does_and_its_peer),
		cmocka_unit_test(the_address_of_a_peer_is_shown_in_place_of_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
