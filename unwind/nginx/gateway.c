/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/gateway.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/elf/dynamic_symbol.h"
#include "unwind/lua/lua_table.h"
#include "unwind/lua/luajit.h"

enum { NAME_BYTES = ROUTE_BYTES - (int)sizeof("route ") };

enum key { KEY_ROUTE, KEY_SERVICE, KEY_API_CTX, KEY_MATCHED_ROUTE, KEY_VALUE, KEY_NAME, KEY_ID, KEY_COUNT };

static const char *const key_texts[KEY_COUNT] = {
	[KEY_ROUTE] = "route",     [KEY_SERVICE] = "service",
	[KEY_API_CTX] = "api_ctx", [KEY_MATCHED_ROUTE] = "matched_route",
	[KEY_VALUE] = "value",     [KEY_NAME] = "name",
	[KEY_ID] = "id",
};

struct gateway {
	bool is_kong;             /* else APISIX */
	uint64_t tables;          /* ngx_lua_ctx_tables */
	uint64_t keys[KEY_COUNT]; /* where the string was last; 0: not known yet */
};

/*---- The module's context ----*/

int32_t gateway_ref_of(const struct member_loads *loads, const struct request_layout *layout)
{
	int32_t found = 0;

	for (size_t i = 0; i < loads->count; i++) {
		const struct member_load *load = &loads->loads[i];

		if (load->depth != 3 || load->bytes != sizeof(int32_t) || load->offsets[0] != layout->r_ctx ||
		    load->offsets[1] != MEMBER_INDEXED || load->offsets[2] == layout->ctx_context)
			continue;
		if (found)
			return 0;
		found = load->offsets[2];
	}
	return found;
}

int32_t gateway_ref_member(struct memory *memory, uint64_t base, const struct request_layout *layout)
{
	struct member_loads loads;
	uint64_t function;

	if (!dynamic_symbol_find(memory, base, "ngx_http_lua_ffi_get_ctx_ref", &function) ||
	    !member_loads_of(memory, function, &loads))
		return 0;
	return gateway_ref_of(&loads, layout);
}

/*---- Which gateway ----*/

struct modules {
	const struct layout *luajit;
	uint64_t kong, apisix, ngx; /* tables; 0: not loaded */
};

static void note_module(void *context, const char *key, uint64_t value)
{
	struct modules *modules = context;
	bool gc64 = modules->luajit->gc64;

	if (tvalue_tag(gc64, value) != TAG_TAB)
		return;
	if (strcmp(key, "kong") == 0)
		modules->kong = tvalue_object(gc64, value);
	else if (strcmp(key, "apisix") == 0)
		modules->apisix = tvalue_object(gc64, value);
	else if (strcmp(key, "ngx") == 0)
		modules->ngx = tvalue_object(gc64, value);
}

struct subsystem {
	struct memory *memory;
	const struct layout *luajit;
	bool is_http;
};

static void note_subsystem(void *context, const char *key, uint64_t value)
{
	struct subsystem *subsystem = context;
	bool gc64 = subsystem->luajit->gc64;
	char text[LUA_TABLE_KEY_SIZE];

	if (strcmp(key, "subsystem") == 0 && tvalue_tag(gc64, value) == TAG_STR &&
	    lua_table_text(subsystem->memory, subsystem->luajit, tvalue_object(gc64, value), text))
		subsystem->is_http = strcmp(text, "http") == 0;
}

/* The stream module has a state of its own, with the same gateway and an ngx.ctx for each connection. */
static bool is_of_http(struct memory *memory, const struct layout *luajit, uint64_t ngx)
{
	struct subsystem subsystem = { .memory = memory, .luajit = luajit };
	uint64_t config;

	if (ngx && lua_table_find_table(memory, luajit, ngx, "config", &config))
		lua_table_each(memory, luajit, config, note_subsystem, &subsystem);
	return subsystem.is_http;
}

struct gateway *gateway_new(struct memory *memory, const struct layout *luajit, uint64_t g)
{
	struct modules modules = { .luajit = luajit };
	struct gateway *gateway;
	uint64_t registry, loaded, tables;

	if (!lua_table_registry(memory, luajit, g, &registry) ||
	    !lua_table_find_table(memory, luajit, registry, "_LOADED", &loaded))
		return NULL;
	lua_table_each(memory, luajit, loaded, note_module, &modules);
	if ((modules.kong != 0) == (modules.apisix != 0) || !is_of_http(memory, luajit, modules.ngx) ||
	    !lua_table_find_table(memory, luajit, registry, "ngx_lua_ctx_tables", &tables))
		return NULL;
	gateway = calloc(1, sizeof(*gateway));
	if (!gateway)
		return NULL;
	gateway->is_kong = modules.kong != 0;
	gateway->tables = tables;
	return gateway;
}

void gateway_free(struct gateway *gateway)
{
	free(gateway);
}

/*---- Tables of a request ----*/

struct reading {
	struct memory *memory;
	const struct layout *luajit;
	struct gateway *gateway;
};

static bool find(const struct reading *reading, uint64_t address, enum key key, uint64_t *ret_value)
{
	return lua_table_find(reading->memory, reading->luajit, address, key_texts[key],
			      &reading->gateway->keys[key], ret_value);
}

static bool find_table(const struct reading *reading, uint64_t address, enum key key, uint64_t *ret_table)
{
	bool gc64 = reading->luajit->gc64;
	uint64_t value;

	if (!find(reading, address, key, &value) || tvalue_tag(gc64, value) != TAG_TAB)
		return false;
	*ret_table = tvalue_object(gc64, value);
	return true;
}

/* The text of a member that is a string or an integer. False if it is neither, or empty. */
static bool find_text(const struct reading *reading, uint64_t address, enum key key,
		      char ret_text[static NAME_BYTES])
{
	const struct layout *luajit = reading->luajit;
	uint64_t value, string;
	uint32_t length;

	if (!find(reading, address, key, &value))
		return false;
	if (tvalue_integer(luajit->gc64, value, &length)) {
		snprintf(ret_text, NAME_BYTES, "%" PRIu32, length);
		return true;
	}
	string = tvalue_object(luajit->gc64, value);
	if (tvalue_tag(luajit->gc64, value) != TAG_STR ||
	    !memory_u32(reading->memory, string + (uint64_t)luajit->GCstr_len, &length))
		return false;
	if (length >= NAME_BYTES)
		length = NAME_BYTES - 1;
	if (memory_read(reading->memory, string + (uint64_t)luajit->GCstr_size, ret_text, length) !=
	    MEMORY_OK)
		return false;
	ret_text[length] = '\0';
	return *ret_text != '\0';
}

/*---- Routes ----*/

static bool find_route(const struct reading *reading, uint64_t ctx, uint64_t *ret_route)
{
	uint64_t api_ctx, matched;

	if (reading->gateway->is_kong)
		return find_table(reading, ctx, KEY_ROUTE, ret_route);
	return find_table(reading, ctx, KEY_API_CTX, &api_ctx) &&
	       find_table(reading, api_ctx, KEY_MATCHED_ROUTE, &matched) &&
	       find_table(reading, matched, KEY_VALUE, ret_route);
}

bool gateway_route(struct memory *memory, const struct request_layout *layout, const struct layout *luajit,
		   struct gateway *gateway, const struct request_context *context,
		   char ret_route[static ROUTE_BYTES])
{
	const struct reading reading = { memory, luajit, gateway };
	char name[NAME_BYTES], service[NAME_BYTES], text[2 * ROUTE_BYTES];
	uint64_t ctx, route, service_table;
	bool has_name, has_service;
	uint32_t ref;

	/* Without an ngx.ctx it is LUA_NOREF, which is negative. */
	if (layout->ctx_ref == 0 || !memory_u32(memory, context->address + (uint64_t)layout->ctx_ref, &ref) ||
	    ref == 0 || ref > INT32_MAX || !lua_table_element(memory, luajit, gateway->tables, ref, &ctx) ||
	    !find_route(&reading, ctx, &route))
		return false;
	has_name = find_text(&reading, route, KEY_NAME, name);
	if (!has_name && !find_text(&reading, route, KEY_ID, name))
		return false;
	has_service = !has_name && gateway->is_kong &&
		      find_table(&reading, ctx, KEY_SERVICE, &service_table) &&
		      find_text(&reading, service_table, KEY_NAME, service);
	snprintf(text, sizeof(text), "route %s%s%s", name, has_service ? " of " : "",
		 has_service ? service : "");
	text[ROUTE_BYTES - 1] = '\0';
	memcpy(ret_route, text, ROUTE_BYTES);
	return true;
}
