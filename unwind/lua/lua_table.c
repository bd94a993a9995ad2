/* SPDX-License-Identifier: MIT */
#include "unwind/lua/lua_table.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/lua/luajit.h"

enum {
	NODES_MAX = 65536, /* of one table */
	SEARCHED_NODES_MAX = 512,
	NODE_BYTES_MAX = 32,
	TABLE_BYTES_MAX = 128,
	KEY_BYTES_MAX = 64, /* a GCstr with a key that is searched for */
};

bool lua_table_text(struct memory *memory, const struct layout *layout, uint64_t string,
		    char ret_text[static LUA_TABLE_KEY_SIZE])
{
	char key[LUA_TABLE_KEY_SIZE];
	uint32_t length;

	if (!memory_u32(memory, string + (uint64_t)layout->GCstr_len, &length) || length == 0 ||
	    length >= LUA_TABLE_KEY_SIZE ||
	    memory_read(memory, string + (uint64_t)layout->GCstr_size, key, length) != MEMORY_OK)
		return false;
	key[length] = '\0';
	if (strlen(key) != length)
		return false;
	memcpy(ret_text, key, length + 1);
	return true;
}

void lua_table_each(struct memory *memory, const struct layout *layout, uint64_t table,
		    lua_table_visit *visit, void *context)
{
	unsigned ref = layout_ref_size(layout);
	uint8_t header[128], *nodes;
	uint64_t node, count;
	size_t bytes;

	if (memory_read(memory, table, header, (size_t)layout->GCtab_size) != MEMORY_OK ||
	    load_bytes(header, layout->GChead_gct, 1) != GCT_TABLE)
		return;
	node = load_bytes(header, layout->GCtab_node, ref);
	count = load_bytes(header, layout->GCtab_hmask, 4) + 1;
	if (count > NODES_MAX)
		return;
	bytes = count * (size_t)layout->Node_size;
	nodes = malloc(bytes);
	if (!nodes)
		return;
	if (memory_read(memory, node, nodes, bytes) == MEMORY_OK) {
		for (uint64_t i = 0; i < count; i++) {
			const uint8_t *entry = nodes + i * (size_t)layout->Node_size;
			uint64_t key = load_bytes(entry, layout->Node_key, SLOT_SIZE);
			char name[LUA_TABLE_KEY_SIZE];

			if (tvalue_tag(layout->gc64, key) == TAG_STR &&
			    lua_table_text(memory, layout, tvalue_object(layout->gc64, key), name))
				visit(context, name, load_bytes(entry, layout->Node_val, SLOT_SIZE));
		}
	}
	free(nodes);
}

struct search {
	const struct layout *layout;
	const char *key;
	uint64_t found; /* 0: none */
};

static void visit_for_table(void *context, const char *key, uint64_t value)
{
	struct search *search = context;

	if (strcmp(key, search->key) == 0 && tvalue_tag(search->layout->gc64, value) == TAG_TAB)
		search->found = tvalue_object(search->layout->gc64, value);
}

bool lua_table_find_table(struct memory *memory, const struct layout *layout, uint64_t table, const char *key,
			  uint64_t *ret_table)
{
	struct search search = { .layout = layout, .key = key };

	lua_table_each(memory, layout, table, visit_for_table, &search);
	if (search.found)
		*ret_table = search.found;
	return search.found != 0;
}

/*---- Searches that read as little as possible ----*/

/* A table's two parts. */
struct table {
	uint64_t array, asize, node, nodes;
};

static bool read_table(struct memory *memory, const struct layout *layout, uint64_t address,
		       struct table *ret_table)
{
	unsigned ref = layout_ref_size(layout);
	uint8_t header[TABLE_BYTES_MAX];

	if (memory_read(memory, address, header, (size_t)layout->GCtab_size) != MEMORY_OK ||
	    load_bytes(header, layout->GChead_gct, 1) != GCT_TABLE)
		return false;
	*ret_table = (struct table){
		.array = load_bytes(header, layout->GCtab_array, ref),
		.asize = load_bytes(header, layout->GCtab_asize, 4),
		.node = load_bytes(header, layout->GCtab_node, ref),
		.nodes = load_bytes(header, layout->GCtab_hmask, 4) + 1,
	};
	return true;
}

/* All nodes of a table, in bytes of Node_size each. False if there are too many. */
static bool read_nodes(struct memory *memory, const struct layout *layout, const struct table *table,
		       uint8_t ret_nodes[static SEARCHED_NODES_MAX * NODE_BYTES_MAX])
{
	return table->nodes <= SEARCHED_NODES_MAX && layout->Node_size <= NODE_BYTES_MAX &&
	       memory_read(memory, table->node, ret_nodes,
			   (size_t)table->nodes * (size_t)layout->Node_size) == MEMORY_OK;
}

/* Is the string at the address the key? */
static bool is_key(struct memory *memory, const struct layout *layout, uint64_t address, const char *key)
{
	size_t length = strlen(key), bytes = (size_t)layout->GCstr_size + length;
	uint8_t string[KEY_BYTES_MAX];

	return bytes <= sizeof(string) && memory_read(memory, address, string, bytes) == MEMORY_OK &&
	       load_bytes(string, layout->GChead_gct, 1) == GCT_STRING &&
	       load_bytes(string, layout->GCstr_len, 4) == length &&
	       memcmp(string + layout->GCstr_size, key, length) == 0;
}

bool lua_table_find(struct memory *memory, const struct layout *layout, uint64_t address, const char *key,
		    uint64_t *known, uint64_t *ret_value)
{
	uint8_t nodes[SEARCHED_NODES_MAX * NODE_BYTES_MAX];
	struct table table;

	if (!read_table(memory, layout, address, &table) || !read_nodes(memory, layout, &table, nodes))
		return false;
	if (*known && !is_key(memory, layout, *known, key))
		*known = 0;
	for (uint64_t i = 0; i < table.nodes; i++) {
		const uint8_t *node = nodes + i * (uint64_t)layout->Node_size;
		uint64_t name = load_bytes(node, layout->Node_key, SLOT_SIZE);
		uint64_t value = load_bytes(node, layout->Node_val, SLOT_SIZE);
		uint64_t string = tvalue_object(layout->gc64, name);

		if (tvalue_tag(layout->gc64, name) != TAG_STR || tvalue_tag(layout->gc64, value) == TAG_NIL ||
		    (*known ? string != *known : !is_key(memory, layout, string, key)))
			continue;
		*known = string;
		*ret_value = value;
		return true;
	}
	return false;
}

bool lua_table_element(struct memory *memory, const struct layout *layout, uint64_t address, uint32_t index,
		       uint64_t *ret_table)
{
	uint8_t nodes[SEARCHED_NODES_MAX * NODE_BYTES_MAX];
	uint64_t value = UINT64_MAX;
	struct table table;
	uint32_t key;

	if (!read_table(memory, layout, address, &table))
		return false;
	if (index < table.asize) {
		if (!memory_u64(memory, table.array + index * (uint64_t)SLOT_SIZE, &value))
			return false;
	} else if (read_nodes(memory, layout, &table, nodes)) {
		for (uint64_t i = 0; i < table.nodes; i++) {
			const uint8_t *node = nodes + i * (uint64_t)layout->Node_size;

			if (tvalue_integer(layout->gc64, load_bytes(node, layout->Node_key, SLOT_SIZE),
					   &key) &&
			    key == index)
				value = load_bytes(node, layout->Node_val, SLOT_SIZE);
		}
	}
	if (tvalue_tag(layout->gc64, value) != TAG_TAB)
		return false;
	*ret_table = tvalue_object(layout->gc64, value);
	return true;
}

bool lua_table_registry(struct memory *memory, const struct layout *layout, uint64_t g, uint64_t *ret_table)
{
	uint64_t registry;

	if (!memory_u64(memory, g + (uint64_t)layout->g_registrytv, &registry) ||
	    tvalue_tag(layout->gc64, registry) != TAG_TAB)
		return false;
	*ret_table = tvalue_object(layout->gc64, registry);
	return true;
}
