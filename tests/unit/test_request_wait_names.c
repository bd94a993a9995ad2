/* SPDX-License-Identifier: MIT */
/* Whom a request waits for: its Lua, its client, or an upstream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/nginx/request_waits.h"
#include "tests/unit/instead_of.h"

enum { THREADS_MAX = 4 };

/* The coroutines of the request: the C function in which each has yielded. */
static struct {
	struct function functions[THREADS_MAX];
	struct frame frames[THREADS_MAX];
	enum coroutine_state states[THREADS_MAX];
} worker;

static struct lua_waits lua;
static struct waiting_request waiting;

INSTEAD_OF(lua_process_coroutine_state);
enum coroutine_state __wrap_lua_process_coroutine_state(const struct lua_process *process, size_t index)
{
	(void)process;
	return worker.states[index];
}

INSTEAD_OF(lua_process_unwind_coroutine);
int __wrap_lua_process_unwind_coroutine(struct lua_process *process, size_t index,
					const struct frame **ret_frames, size_t *ret_count)
{
	(void)process;
	*ret_frames = &worker.frames[index];
	*ret_count = worker.states[index] != COROUTINE_DEAD;
	return 0;
}

static int begin(void **state)
{
	(void)state;
	memset(&worker, 0, sizeof(worker));
	memset(&lua, 0, sizeof(lua));
	waiting = (struct waiting_request){ .request = { .status = 200 },
					    .upstream = { .peer = "127.0.0.1:80" } };
	lua.is_there[0] = true;
	return 0;
}

static void add_coroutine(const char *function, enum coroutine_state in)
{
	size_t index = lua.count[0]++;

	worker.functions[index] = (struct function){ .kind = FRAME_C_FUNCTION, .name = function };
	worker.frames[index] = (struct frame){ .function = &worker.functions[index] };
	worker.states[index] = in;
	lua.waits[index].thread = index + 1;
}

static void assert_waits_for(const char *first, const char *second)
{
	struct request_wait waits[LIGHT_THREADS_MAX];
	size_t count = 0;

	assert_int_equal(request_waits_of(NULL, &waiting, &lua, 0, waits, &count), 0);
	assert_int_equal(count, second ? 2 : 1);
	assert_string_equal(waits[0].name, first);
	if (second)
		assert_string_equal(waits[1].name, second);
}

static void assert_client(enum nginx_upstream_state state, enum connection_wait client, const char *first,
			  const char *second)
{
	waiting.upstream.state = state;
	waiting.client = client;
	assert_waits_for(first, second);
}

static void an_upstream_counts_if_nothing_else_is_awaited(void **state)
{
	(void)state;
	assert_client(NGINX_UPSTREAM_DONE, CONNECTION_WAIT_WRITE, "client write", NULL);
	assert_client(NGINX_UPSTREAM_RESOLVING, CONNECTION_WAIT_UNKNOWN, "upstream DNS: 127.0.0.1:80", NULL);
	assert_client(NGINX_UPSTREAM_CONNECTING, CONNECTION_WAIT_UNKNOWN, "upstream connect: 127.0.0.1:80",
		      NULL);
	assert_client(NGINX_UPSTREAM_WAITING, CONNECTION_WAIT_UNKNOWN, "upstream first byte: 127.0.0.1:80",
		      NULL);
	waiting.upstream.peer[0] = '\0';
	assert_client(NGINX_UPSTREAM_READING, CONNECTION_WAIT_UNKNOWN, "upstream answer: -", NULL);
}

static void a_client_without_a_time_limit_is_not_awaited(void **state)
{
	(void)state;
	assert_client(NGINX_UPSTREAM_NONE, CONNECTION_WAIT_UNKNOWN, "unknown: in nginx", NULL);
	assert_client(NGINX_UPSTREAM_DONE, CONNECTION_WAIT_NONE, "unknown: in nginx", NULL);
	assert_client(NGINX_UPSTREAM_READING, CONNECTION_WAIT_NONE, "upstream answer: 127.0.0.1:80", NULL);
	waiting.behind = (struct nginx_upstream){ .state = NGINX_UPSTREAM_WAITING, .peer = "127.0.0.1:81" };
	assert_client(NGINX_UPSTREAM_DONE, CONNECTION_WAIT_NONE, "upstream first byte: 127.0.0.1:81", NULL);
	assert_client(NGINX_UPSTREAM_DONE, CONNECTION_WAIT_WRITE, "client write", NULL);
	/* It may be the client. */
	assert_client(NGINX_UPSTREAM_DONE, CONNECTION_WAIT_UNKNOWN, "unknown: in nginx", NULL);
	lua.waits_for_cache[0] = true;
	assert_client(NGINX_UPSTREAM_NONE, CONNECTION_WAIT_NONE, "cache lock", NULL);
	lua.is_there[0] = false;
	assert_client(NGINX_UPSTREAM_NONE, CONNECTION_WAIT_NONE, "unknown", NULL);
}

static void a_client_that_does_not_take_its_answer(void **state)
{
	(void)state;
	assert_client(NGINX_UPSTREAM_READING, CONNECTION_WAIT_WRITE, "client write", NULL);
	assert_client(NGINX_UPSTREAM_READING, CONNECTION_WAIT_DELAY, "limit_rate", NULL);
	/* What nginx itself answers as there is no such name. */
	assert_client(NGINX_UPSTREAM_RESOLVING, CONNECTION_WAIT_WRITE, "client write", NULL);
	/* It takes no earlier part of the answer; this subrequest waits for its upstream. */
	assert_client(NGINX_UPSTREAM_CONNECTING, CONNECTION_WAIT_WRITE, "upstream connect: 127.0.0.1:80",
		      NULL);
	assert_client(NGINX_UPSTREAM_WAITING, CONNECTION_WAIT_WRITE, "upstream first byte: 127.0.0.1:80",
		      NULL);
}

static void a_client_that_does_not_send_its_body(void **state)
{
	(void)state;
	assert_client(NGINX_UPSTREAM_WAITING, CONNECTION_WAIT_READ, "client read", NULL);
	/* Nothing is sent before there is a connection. */
	assert_client(NGINX_UPSTREAM_CONNECTING, CONNECTION_WAIT_READ, "upstream connect: 127.0.0.1:80",
		      NULL);
	assert_client(NGINX_UPSTREAM_RESOLVING, CONNECTION_WAIT_READ, "upstream DNS: 127.0.0.1:80", NULL);
	/* Whoever is the next to say something. */
	assert_client(NGINX_UPSTREAM_READING, CONNECTION_WAIT_READ, "client read",
		      "upstream answer: 127.0.0.1:80");
	waiting.is_stream = true;
	assert_client(NGINX_UPSTREAM_WAITING, CONNECTION_WAIT_READ, "client read",
		      "upstream first byte: 127.0.0.1:80");
}

static void lua_that_waits_has_no_upstream(void **state)
{
	(void)state;
	add_coroutine("ngx.sleep", COROUTINE_SUSPENDED);
	assert_client(NGINX_UPSTREAM_RESOLVING, CONNECTION_WAIT_UNKNOWN, "sleep", NULL);
	assert_client(NGINX_UPSTREAM_NONE, CONNECTION_WAIT_UNKNOWN, "sleep", NULL);
	/* A light thread of it. */
	worker.functions[0].name = "ngx.thread.wait";
	add_coroutine("ngx.location.capture", COROUTINE_SUSPENDED);
	assert_client(NGINX_UPSTREAM_RESOLVING, CONNECTION_WAIT_UNKNOWN, "subrequest", NULL);
}

static void lua_that_has_ended_leaves_the_upstream(void **state)
{
	(void)state;
	add_coroutine("ngx.exit", COROUTINE_SUSPENDED);
	add_coroutine("coroutine.yield", COROUTINE_SUSPENDED);
	add_coroutine("ngx.sleep", COROUTINE_DEAD);
	assert_client(NGINX_UPSTREAM_WAITING, CONNECTION_WAIT_UNKNOWN, "upstream first byte: 127.0.0.1:80",
		      NULL);
	assert_client(NGINX_UPSTREAM_READING, CONNECTION_WAIT_WRITE, "client write", NULL);
}

/* Then the one that waits is what the request waits for. */
static void lua_that_has_resumed_another_one_does_not_wait_itself(void **state)
{
	(void)state;
	add_coroutine("coroutine.yield", COROUTINE_SUSPENDED);
	add_coroutine("ngx.sleep", COROUTINE_SUSPENDED);
	assert_client(NGINX_UPSTREAM_NONE, CONNECTION_WAIT_UNKNOWN, "Lua", "sleep");
	lua.waits[1].parent = lua.waits[0].thread;
	assert_client(NGINX_UPSTREAM_NONE, CONNECTION_WAIT_UNKNOWN, "sleep", NULL);
	/* It has ended, and goes on in nobody. */
	worker.states[1] = COROUTINE_DEAD;
	assert_client(NGINX_UPSTREAM_NONE, CONNECTION_WAIT_UNKNOWN, "Lua", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_upstream_counts_if_nothing_else_is_awaited, begin),
		cmocka_unit_test_setup(a_client_without_a_time_limit_is_not_awaited, begin),
		cmocka_unit_test_setup(a_client_that_does_not_take_its_answer, begin),
		cmocka_unit_test_setup(a_client_that_does_not_send_its_body, begin),
		cmocka_unit_test_setup(lua_that_waits_has_no_upstream, begin),
		cmocka_unit_test_setup(lua_that_has_ended_leaves_the_upstream, begin),
		cmocka_unit_test_setup(lua_that_has_resumed_another_one_does_not_wait_itself, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
