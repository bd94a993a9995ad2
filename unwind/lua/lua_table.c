/* SPDX-License-Identifier: MIT */
#include "unwind/lua/lua_table.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/lua/luajit.h"

enum { NODES_MAX = 65536 }; /* of one table */

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

bool lua_table_registry(struct memory *memory, const struct layout *layout, uint64_t g, uint64_t *ret_table)
{
	uint64_t registry;

	if (!memory_u64(memory, g + (uint64_t)layout->g_registrytv, &registry) ||
	    tvalue_tag(layout->gc64, registry) != TAG_TAB)
		return false;
	*ret_table = tvalue_object(layout->gc64, registry);
	return true;
}
