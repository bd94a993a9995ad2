/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/gateway.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/elf/dynamic_symbol.h"
#include "unwind/lua/lua_table.h"
#include "unwind/lua/luajit.h"

enum {
	NODES_MAX = 512, /* of a table that is searched: a request's and a route's have fewer than 100 */
	NODE_BYTES_MAX = 32,
	TABLE_BYTES_MAX = 128,
	KEY_BYTES_MAX = 64, /* a GCstr with one of the keys */
	NAME_BYTES = ROUTE_BYTES - (int)sizeof("route "),
	INTEGERS_END = 1 << 30, /* references and ids are counted from 1 */
};

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

/* A table's two parts. */
struct table {
	uint64_t array, asize, node, nodes;
};

static bool read_table(const struct reading *reading, uint64_t address, struct table *ret_table)
{
	const struct layout *luajit = reading->luajit;
	unsigned ref = layout_ref_size(luajit);
	uint8_t header[TABLE_BYTES_MAX];

	if (memory_read(reading->memory, address, header, (size_t)luajit->GCtab_size) != MEMORY_OK ||
	    load_bytes(header, luajit->GChead_gct, 1) != GCT_TABLE)
		return false;
	*ret_table = (struct table){
		.array = load_bytes(header, luajit->GCtab_array, ref),
		.asize = load_bytes(header, luajit->GCtab_asize, 4),
		.node = load_bytes(header, luajit->GCtab_node, ref),
		.nodes = load_bytes(header, luajit->GCtab_hmask, 4) + 1,
	};
	return true;
}

/* All nodes of a table, in bytes of Node_size each. False if there are too many. */
static bool read_nodes(const struct reading *reading, const struct table *table,
		       uint8_t ret_nodes[static NODES_MAX * NODE_BYTES_MAX])
{
	return table->nodes <= NODES_MAX && reading->luajit->Node_size <= NODE_BYTES_MAX &&
	       memory_read(reading->memory, table->node, ret_nodes,
			   (size_t)table->nodes * (size_t)reading->luajit->Node_size) == MEMORY_OK;
}

/* Is the string at the address the key? */
static bool is_key(const struct reading *reading, uint64_t address, enum key key)
{
	const struct layout *luajit = reading->luajit;
	size_t length = strlen(key_texts[key]);
	uint8_t string[KEY_BYTES_MAX];
	size_t bytes = (size_t)luajit->GCstr_size + length;

	return bytes <= sizeof(string) && memory_read(reading->memory, address, string, bytes) == MEMORY_OK &&
	       load_bytes(string, luajit->GChead_gct, 1) == GCT_STRING &&
	       load_bytes(string, luajit->GCstr_len, 4) == length &&
	       memcmp(string + luajit->GCstr_size, key_texts[key], length) == 0;
}

/*
 * The value of a key. LuaJIT has each string once, so the address of a string that was the key and still is
 * tells the node.
 */
static bool find(const struct reading *reading, uint64_t address, enum key key, uint64_t *ret_value)
{
	const struct layout *luajit = reading->luajit;
	uint64_t *known = &reading->gateway->keys[key];
	uint8_t nodes[NODES_MAX * NODE_BYTES_MAX];
	struct table table;

	if (!read_table(reading, address, &table) || !read_nodes(reading, &table, nodes))
		return false;
	if (*known && !is_key(reading, *known, key))
		*known = 0;
	for (uint64_t i = 0; i < table.nodes; i++) {
		const uint8_t *node = nodes + i * (uint64_t)luajit->Node_size;
		uint64_t name = load_bytes(node, luajit->Node_key, SLOT_SIZE);
		uint64_t value = load_bytes(node, luajit->Node_val, SLOT_SIZE);
		uint64_t string = tvalue_object(luajit->gc64, name);

		if (tvalue_tag(luajit->gc64, name) != TAG_STR || tvalue_tag(luajit->gc64, value) == TAG_NIL ||
		    (*known ? string != *known : !is_key(reading, string, key)))
			continue;
		*known = string;
		*ret_value = value;
		return true;
	}
	return false;
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

/* An integer, which may be kept as a double. False if it is none, or not from 0 on to INTEGERS_END. */
static bool integer_of(const struct layout *luajit, uint64_t value, uint32_t *ret_integer)
{
	bool is_integer;
	double number;

	if (!tvalue_is_number(luajit->gc64, value, &is_integer))
		return false;
	memcpy(&number, &value, sizeof(number));
	if (is_integer)
		number = (int32_t)(uint32_t)value;
	if (!(number >= 0 && number < INTEGERS_END) || (uint32_t)number != number)
		return false;
	*ret_integer = (uint32_t)number;
	return true;
}

/* The element of a table with an integer as key. It is in the hash part while the array part is smaller. */
static bool find_element(const struct reading *reading, uint64_t address, uint32_t index, uint64_t *ret_table)
{
	const struct layout *luajit = reading->luajit;
	uint8_t nodes[NODES_MAX * NODE_BYTES_MAX];
	uint64_t value = UINT64_MAX;
	struct table table;
	uint32_t key;

	if (!read_table(reading, address, &table))
		return false;
	if (index < table.asize) {
		if (!memory_u64(reading->memory, table.array + index * (uint64_t)SLOT_SIZE, &value))
			return false;
	} else if (read_nodes(reading, &table, nodes)) {
		for (uint64_t i = 0; i < table.nodes; i++) {
			const uint8_t *node = nodes + i * (uint64_t)luajit->Node_size;

			if (integer_of(luajit, load_bytes(node, luajit->Node_key, SLOT_SIZE), &key) &&
			    key == index)
				value = load_bytes(node, luajit->Node_val, SLOT_SIZE);
		}
	}
	if (tvalue_tag(luajit->gc64, value) != TAG_TAB)
		return false;
	*ret_table = tvalue_object(luajit->gc64, value);
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
	if (integer_of(luajit, value, &length)) {
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
	    ref == 0 || ref > INT32_MAX || !find_element(&reading, gateway->tables, ref, &ctx) ||
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
