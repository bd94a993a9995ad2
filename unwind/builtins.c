#include "unwind/builtins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/luajit.h"

enum {
	NODES_MAX = 65536,	/* of one table */
};

struct collector {
	struct memory *memory;
	const struct layout *layout;
	struct builtins *builtins;
};

/* Called for each pair with a string key. */
typedef void visit_pair(struct collector *collector, const char *key, uint64_t value,
			const char *context);

static uint64_t load(const uint8_t *bytes, int32_t offset, unsigned size)
{
	uint64_t value = 0;

	memcpy(&value, bytes + offset, size);
	return value;
}

static bool load_key(const struct collector *collector, uint64_t string,
		     char ret_key[static BUILTIN_NAME_SIZE])
{
	const struct layout *layout = collector->layout;
	char key[BUILTIN_NAME_SIZE];
	uint32_t length;

	if (!memory_u32(collector->memory, string + (uint64_t)layout->GCstr_len, &length) ||
	    length == 0 || length >= BUILTIN_NAME_SIZE ||
	    memory_read(collector->memory, string + (uint64_t)layout->GCstr_size, key,
			length) != MEMORY_OK)
		return false;
	key[length] = '\0';
	if (strlen(key) != length)
		return false;
	memcpy(ret_key, key, length + 1);
	return true;
}

static void visit_table(struct collector *collector, uint64_t table, visit_pair *visit,
			const char *context)
{
	const struct layout *layout = collector->layout;
	unsigned ref = layout_ref_size(layout);
	uint8_t header[128], *nodes;
	uint64_t node, count;
	size_t bytes;

	if (memory_read(collector->memory, table, header, (size_t)layout->GCtab_size) != MEMORY_OK ||
	    load(header, layout->GChead_gct, 1) != GCT_TAB)
		return;
	node = load(header, layout->GCtab_node, ref);
	count = load(header, layout->GCtab_hmask, 4) + 1;
	if (count > NODES_MAX)
		return;
	bytes = count * (size_t)layout->Node_size;
	nodes = malloc(bytes);
	if (!nodes)
		return;
	if (memory_read(collector->memory, node, nodes, bytes) == MEMORY_OK) {
		for (uint64_t i = 0; i < count; i++) {
			const uint8_t *one = nodes + i * (size_t)layout->Node_size;
			uint64_t key = load(one, layout->Node_key, SLOT_SIZE);
			char name[BUILTIN_NAME_SIZE];

			if (tvalue_tag(layout->gc64, key) == TAG_STR &&
			    load_key(collector, tvalue_object(layout->gc64, key), name))
				visit(collector, name, load(one, layout->Node_val, SLOT_SIZE),
				      context);
		}
	}
	free(nodes);
}

static void visit_function(struct collector *collector, const char *key, uint64_t value,
			   const char *module)
{
	const struct layout *layout = collector->layout;
	uint64_t function = tvalue_object(layout->gc64, value);
	char *name;
	uint8_t gct, ffid;

	if (tvalue_tag(layout->gc64, value) != TAG_FUNC ||
	    !memory_u8(collector->memory, function + (uint64_t)layout->GChead_gct, &gct) ||
	    gct != GCT_FUNC ||
	    !memory_u8(collector->memory, function + (uint64_t)layout->GCfunc_ffid, &ffid) ||
	    ffid <= FF_C)
		return;
	name = collector->builtins->names[ffid];
	if (*name)
		return;
	if (strcmp(module, "_G") == 0)
		snprintf(name, BUILTIN_NAME_SIZE, "%s", key);
	else if (strlen(module) + strlen(key) + 2 <= BUILTIN_NAME_SIZE)
		sprintf(name, "%s.%s", module, key);
}

static void visit_module(struct collector *collector, const char *key, uint64_t value,
			 const char *context)
{
	(void)context;
	if (tvalue_tag(collector->layout->gc64, value) == TAG_TAB)
		visit_table(collector, tvalue_object(collector->layout->gc64, value),
			    visit_function, key);
}

static void visit_registry(struct collector *collector, const char *key, uint64_t value,
			   const char *context)
{
	(void)context;
	if (strcmp(key, "_LOADED") == 0 && tvalue_tag(collector->layout->gc64, value) == TAG_TAB)
		visit_table(collector, tvalue_object(collector->layout->gc64, value),
			    visit_module, "");
}

void builtins_collect(struct memory *memory, const struct layout *layout, uint64_t g,
		      struct builtins *ret_builtins)
{
	struct collector collector = {
		.memory = memory,
		.layout = layout,
		.builtins = ret_builtins,
	};
	uint64_t registry;

	memset(ret_builtins, 0, sizeof(*ret_builtins));
	if (memory_u64(memory, g + (uint64_t)layout->g_registrytv, &registry) &&
	    tvalue_tag(layout->gc64, registry) == TAG_TAB)
		visit_table(&collector, tvalue_object(layout->gc64, registry), visit_registry, "");
}
