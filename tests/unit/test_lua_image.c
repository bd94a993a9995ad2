/* SPDX-License-Identifier: MIT */
/* The list of a process's LuaJIT states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "unwind/capture/lua_image.h"
#include "unwind/jit/traces.h"
#include "unwind/nginx/gateway.h"

enum { G = 0x10000, STEP = 0x1000 };

static struct lua_image *lua;
static const struct vm_code vm = { .layout = { .has_jit = true } },
			    other = { .layout = { .has_jit = false } };

/* A gateway is no more here than that there is one. */
static size_t gateways_freed;

INSTEAD_OF(gateway_free);
void __wrap_gateway_free(struct gateway *gateway)
{
	gateways_freed += gateway != NULL;
}

static void set_gateway(uint64_t g)
{
	lua_image_find(lua, g)->gateway = (struct gateway *)&gateways_freed;
}

static int begin(void **state)
{
	(void)state;
	gateways_freed = 0;
	lua = lua_image_new(NULL);
	return lua ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	lua_image_free(lua);
	return 0;
}

static void a_state_is_added_once(void **state)
{
	const struct global_state *first;

	(void)state;
	assert_int_equal(lua_image_count(lua), 0);
	assert_null(lua_image_find(lua, G));
	lua_image_add(lua, G, &vm);
	lua_image_add(lua, G + STEP, &other);
	first = lua_image_global(lua, 0);
	lua_image_add(lua, G, &other);
	assert_int_equal(lua_image_count(lua), 2);
	assert_ptr_equal(lua_image_find(lua, G), first);
	assert_int_equal(first->g, G);
	assert_ptr_equal(first->vm, &vm);
	assert_non_null(first->traces);
	assert_int_equal(lua_image_global(lua, 1)->g, G + STEP);
	assert_ptr_equal(lua_image_find(lua, G + STEP), lua_image_global(lua, 1));
	/* Without a JIT compiler there are no traces. */
	assert_null(lua_image_global(lua, 1)->traces);
	assert_null(lua_image_find(lua, G + 2 * STEP));
}

static void states_do_not_move(void **state)
{
	const struct global_state *first;

	(void)state;
	lua_image_add(lua, G, &other);
	first = lua_image_global(lua, 0);
	for (uint64_t i = 1; i < LUA_IMAGE_GLOBALS_MAX + 10; i++)
		lua_image_add(lua, G + i * STEP, &other);
	assert_int_equal(lua_image_count(lua), LUA_IMAGE_GLOBALS_MAX);
	assert_ptr_equal(lua_image_global(lua, 0), first);
	assert_non_null(lua_image_find(lua, G + (LUA_IMAGE_GLOBALS_MAX - 1) * STEP));
	assert_null(lua_image_find(lua, G + (uint64_t)LUA_IMAGE_GLOBALS_MAX * STEP));
}

static void one_state_is_forgotten(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		lua_image_add(lua, G + i * STEP, &vm);
	set_gateway(G + STEP);
	lua_image_forget(lua, G + STEP);
	assert_int_equal(gateways_freed, 1);
	assert_int_equal(lua_image_count(lua), 2);
	assert_int_equal(lua_image_global(lua, 0)->g, G);
	assert_int_equal(lua_image_global(lua, 1)->g, G + 2 * STEP);
	lua_image_forget(lua, G + STEP); /* nothing is left to forget */
	assert_int_equal(lua_image_count(lua), 2);
}

static void a_gateway_is_known_if_it_is_the_only_one(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		lua_image_add(lua, G + i * STEP, &vm);
	assert_null(lua_image_gateway(lua));
	set_gateway(G + STEP);
	assert_ptr_equal(lua_image_gateway(lua), lua_image_find(lua, G + STEP));
	set_gateway(G);
	assert_null(lua_image_gateway(lua));
}

static void how_to_read_requests_is_unknown_until_it_is_set(void **state)
{
	const struct request_layout layout = { .known = true, .r_ctx = 16 };
	const struct request_members members = { .known = true, .uri = 24 };

	(void)state;
	assert_false(lua_image_request_layout(lua)->known);
	assert_false(lua_image_request_members(lua)->known);
	lua_image_set_request_layout(lua, &layout);
	lua_image_set_request_members(lua, &members);
	assert_memory_equal(lua_image_request_layout(lua), &layout, sizeof(layout));
	assert_memory_equal(lua_image_request_members(lua), &members, sizeof(members));
}

static void it_says_of_which_code_it_is(void **state)
{
	const struct image *code = (const struct image *)&gateways_freed;
	struct lua_image *of_code = lua_image_new(code);

	(void)state;
	assert_non_null(of_code);
	assert_ptr_equal(lua_image_code(of_code), code);
	lua_image_free(of_code);
	lua_image_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_state_is_added_once),
		TEST(states_do_not_move),
		TEST(one_state_is_forgotten),
		TEST(a_gateway_is_known_if_it_is_the_only_one),
		TEST(how_to_read_requests_is_unknown_until_it_is_set),
		TEST(it_says_of_which_code_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
