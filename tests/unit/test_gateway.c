/* SPDX-License-Identifier: MIT */
/* The routes that Kong and APISIX have matched, in made-up memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/made_up_lua.h"
#include "unwind/nginx/gateway.h"

/* Words of the target: the global_State, the module's context of the request, and objects from OBJECTS on. */
enum { G = 2, CONTEXT = 4, OBJECTS = 8, CTX_REF = WORD, UNMAPPED = WORDS };

static const struct layout *const luajit = &made_up_gc64;
static const struct request_layout layout = { .known = true, .ctx_ref = CTX_REF };
static const struct request_context context = { .address = BASE + CONTEXT * WORD };

/* What gets the next object. */
static struct made_up made_up;
static size_t next;

static uint64_t string(const char *text)
{
	size_t word = next;

	next += 4 + strlen(text) / WORD;
	return put_string(&made_up, luajit, word, text);
}

/* A table of one or two pairs; a value of 0 is none. */
static uint64_t table(const char *key, uint64_t value, const char *other_key, uint64_t other)
{
	uint64_t keys[2] = { string(key), string(other_key) };
	size_t word = next;

	next += 6 + 2 * NODE_WORDS;
	put_table(&made_up, luajit, word, word, 0, word + 6, 2);
	if (value)
		put_node(&made_up, word + 6, keys[0], value);
	if (other)
		put_node(&made_up, word + 6 + NODE_WORDS, keys[1], other);
	return tagged(luajit, TAG_TAB, at(word));
}

static uint64_t integer(uint32_t value)
{
	return tagged(luajit, TAG_NUMBER, value);
}

/* A process with this module loaded, and this ngx.ctx as element 2 of its table of them. */
static void begin(const char *module, const char *subsystem, uint64_t (*make_ctx)(void))
{
	uint64_t config, ngx, loaded, tables;
	size_t elements;

	made_up = (struct made_up){ .memory = { .read_ranges = read_ranges } };
	next = OBJECTS;
	config = table("subsystem", subsystem ? string(subsystem) : 0, "debug", integer(0));
	ngx = table("config", config, "null", integer(0));
	loaded = table(module, table("name", string("x"), "y", 0), "ngx", ngx);
	elements = next;
	next += 3 + 6 + NODE_WORDS;
	tables = put_table(&made_up, luajit, elements + 3, elements, 3, elements + 9, 1);
	made_up.words[elements + 2] = make_ctx();
	made_up.words[G + 1] = tagged(
		luajit, TAG_TAB, tvalue_object(true, table("_LOADED", loaded, "ngx_lua_ctx_tables", tables)));
	made_up.words[CONTEXT + 1] = 2;
	assert_in_range(next, 0, WORDS);
}

/* The route; NULL if there is no gateway, "" if it has matched none. */
static const char *route(void)
{
	struct gateway *gateway = gateway_new(&made_up.memory, luajit, at(G));
	static char routes[2][ROUTE_BYTES];
	bool found[2];

	if (!gateway)
		return NULL;
	/* The second time it knows where the keys are. */
	for (size_t i = 0; i < 2; i++) {
		memset(routes[i], 0, sizeof(routes[i]));
		found[i] = gateway_route(&made_up.memory, &layout, luajit, gateway, &context, routes[i]);
	}
	gateway_free(gateway);
	assert_int_equal(found[0], found[1]);
	assert_string_equal(routes[0], routes[1]);
	assert_int_equal(found[0], routes[0][0] != '\0');
	return routes[0];
}

static uint64_t kong_named(void)
{
	return table("route", table("name", string("orders"), "id", string("4711")), "service",
		     table("name", string("shop"), "id", 0));
}

static uint64_t kong_without_name(void)
{
	return table("route", table("name", 0, "id", string("4711")), "service",
		     table("name", string("shop"), "id", 0));
}

static uint64_t kong_without_service(void)
{
	return table("route", table("name", string(""), "id", integer(12)), "service", 0);
}

static uint64_t kong_without_anything(void)
{
	return table("route", table("name", 0, "id", 0), "service", 0);
}

static uint64_t kong_before_a_match(void)
{
	return table("x", integer(1), "service", table("name", string("shop"), "id", 0));
}

static uint64_t apisix(uint64_t matched)
{
	return table("api_ctx", table("matched_route", table("value", matched, "x", 0), "y", 0), "z", 0);
}

static uint64_t apisix_named(void)
{
	return apisix(table("name", string("orders"), "id", string("4711")));
}

static uint64_t apisix_without_name(void)
{
	return apisix(table("service", table("name", string("shop"), "x", 0), "id", string("4711")));
}

static uint64_t apisix_before_a_match(void)
{
	return table("api_ctx", table("x", 0, "y", 0), "z", 0);
}

static void routes_have_a_name_or_an_identifier(void **state)
{
	static const struct {
		const char *module;
		uint64_t (*ctx)(void);
		const char *route;
	} known[] = {
		{ "kong", kong_named, "route orders" },
		{ "kong", kong_without_name, "route 4711 of shop" },
		{ "kong", kong_without_service, "route 12" },
		{ "kong", kong_without_anything, "" },
		{ "kong", kong_before_a_match, "" },
		{ "kong", apisix_named, "" },
		{ "apisix", apisix_named, "route orders" },
		{ "apisix", apisix_without_name, "route 4711" },
		{ "apisix", apisix_before_a_match, "" },
		{ "apisix", kong_named, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		begin(known[i].module, "http", known[i].ctx);
		assert_string_equal(route(), known[i].route);
	}
}

static void only_gateways_of_http_have_routes(void **state)
{
	(void)state;
	begin("kong", "stream", kong_named);
	assert_null(route());
	begin("kong", NULL, kong_named);
	assert_null(route());
	begin("lapis", "http", kong_named);
	assert_null(route());
	begin("kong", "http", kong_named);
	made_up.words[G + 1] = integer(1);
	assert_null(route());
}

static void without_a_reference_there_is_no_route(void **state)
{
	static const uint32_t none[] = { 0, 1, 3, UINT32_MAX, UINT32_MAX - 1 };
	struct gateway *gateway;
	struct request_layout unknown = layout;
	char text[ROUTE_BYTES];

	(void)state;
	begin("kong", "http", kong_named);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		made_up.words[CONTEXT + 1] = none[i];
		assert_string_equal(route(), "");
	}
	made_up.words[CONTEXT + 1] = 2;
	assert_string_equal(route(), "route orders");
	unknown.ctx_ref = 0;
	gateway = gateway_new(&made_up.memory, luajit, at(G));
	assert_non_null(gateway);
	made_up.words[CONTEXT] = 2;
	assert_false(gateway_route(&made_up.memory, &unknown, luajit, gateway, &context, text));
	gateway_free(gateway);
}

static char name[400];

static uint64_t kong_with_a_long_name(void)
{
	return table("route", table("name", string(name), "id", 0), "service", 0);
}

static void long_names_are_cut(void **state)
{
	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	begin("kong", "http", kong_with_a_long_name);
	assert_memory_equal(route(), "route nnn", 9);
	assert_in_range(strlen(route()), ROUTE_BYTES - 3, ROUTE_BYTES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes_have_a_name_or_an_identifier),
		cmocka_unit_test(only_gateways_of_http_have_routes),
		cmocka_unit_test(without_a_reference_there_is_no_route),
		cmocka_unit_test(long_names_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
