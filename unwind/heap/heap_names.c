/* SPDX-License-Identifier: MIT */
/* Under which names functions are held: their prototypes know none. */
#include "unwind/heap/heap_names.h"

#include <errno.h>
#include <stdlib.h>

#include "memory/word_hash.h"
#include "unwind/heap/heap_reading.h"

/* What makes a name a better one: that of a higher sum wins. A local's has none of them. */
enum {
	OF_SMALL_TABLE = 1 << 0, /* many keys are made by the program as it runs */
	IDENTIFIER = 1 << 1,
	OF_MODULE = 1 << 2,
	FIELD = 1 << 3,
	SMALL_TABLE = 128, /* slots for keys */
};

struct function_name {
	uint64_t proto; /* its address */
	uint32_t text, holder;
	unsigned int rank;
	UT_hash_handle hh;
};

struct module_table {
	uint64_t address;
	UT_hash_handle hh;
};

struct heap_names {
	struct function_name *names;
	struct module_table *modules;
	uint32_t holder;   /* a node: that of the edges that follow */
	unsigned int rank; /* of fields of the holder, without what their keys tell */
	int error;
};

struct heap_names *heap_names_new(void)
{
	return calloc(1, sizeof(struct heap_names));
}

void heap_names_free(struct heap_names *names)
{
	if (!names)
		return;
	HASH_FREE_ALL(names->names);
	HASH_FREE_ALL(names->modules);
	free(names);
}

/*---- Holders ----*/

static struct module_table *find_module(const struct heap_names *names, uint64_t address)
{
	struct module_table *module;

	HASH_FIND(hh, names->modules, &address, sizeof(address), module);
	return module;
}

void heap_names_add_module(struct heap_names *names, uint64_t address)
{
	struct module_table *module;

	if (address == 0 || find_module(names, address))
		return;
	module = calloc(1, sizeof(*module));
	if (module) {
		module->address = address;
		HASH_ADD(hh, names->modules, address, sizeof(module->address), module);
	}
	if (!module || !hash_added(&module->hh)) {
		free(module);
		names->error = -ENOMEM;
	}
}

void heap_names_start(struct heap_names *names, uint32_t holder, uint64_t address, uint64_t slots)
{
	names->holder = holder;
	names->rank = FIELD;
	if (slots <= SMALL_TABLE)
		names->rank |= OF_SMALL_TABLE;
	if (find_module(names, address))
		names->rank |= OF_MODULE;
}

/*---- Names ----*/

static struct function_name *find(const struct heap_names *names, uint64_t proto)
{
	struct function_name *name;

	HASH_FIND(hh, names->names, &proto, sizeof(proto), name);
	return name;
}

/* NULL when memory is short. */
static struct function_name *add(struct heap_names *names, uint64_t proto)
{
	struct function_name *name = calloc(1, sizeof(*name));

	if (!name)
		return NULL;
	name->proto = proto;
	HASH_ADD(hh, names->names, proto, sizeof(name->proto), name);
	if (hash_added(&name->hh))
		return name;
	free(name);
	return NULL;
}

static unsigned int rank_of(const struct heap_reading *reading, const struct heap_edge *edge)
{
	if (edge->hold != HEAP_HOLDS_FIELD)
		return 0;
	return reading->names->rank |
	       (heap_is_identifier(heap_builder_string(reading->builder, edge->text)) ? IDENTIFIER : 0);
}

/*
 * Later holders and other slots for the same keys are to change no name. The oldest holder comes last in
 * the collector's list, so that each holder's name is better than that of one before. Of a table's names
 * it is the least one, and of a stack's the first: that of its outermost frame.
 */
static bool is_better(const struct heap_reading *reading, const struct function_name *name, unsigned int rank,
		      uint32_t text)
{
	if (rank != name->rank)
		return rank > name->rank;
	if (reading->names->holder != name->holder)
		return true;
	return rank && strcmp(heap_builder_string(reading->builder, text),
			      heap_builder_string(reading->builder, name->text)) < 0;
}

/* The address of a Lua function's prototype; 0 if it is none, or cannot be read. */
static uint64_t proto_of(struct heap_reading *reading, uint64_t address)
{
	const struct layout *layout = reading->layout;
	const uint8_t *function = heap_object(reading, address, layout->GCfuncL_uvptr);

	return function && heap_field(function, layout->GCfunc_ffid, 1) == FF_LUA
		       ? heap_ref(reading, function, layout->GCfunc_pc) - (uint64_t)layout->GCproto_size
		       : 0;
}

void heap_names_note(struct heap_reading *reading, const struct heap_edge *edge)
{
	const struct heap_node *node = heap_builder_node(reading->builder, edge->to);
	struct heap_names *names = reading->names;
	struct function_name *name;
	unsigned int rank;
	uint64_t proto;

	if (node->kind != HEAP_KIND_FUNCTION || edge->text == HEAP_TEXT_NONE ||
	    (edge->hold != HEAP_HOLDS_FIELD && edge->hold != HEAP_HOLDS_LOCAL))
		return;
	proto = proto_of(reading, node->address);
	if (!proto)
		return;
	rank = rank_of(reading, edge);
	name = find(names, proto);
	if (name && !is_better(reading, name, rank, edge->text))
		return;
	if (!name)
		name = add(names, proto);
	if (!name) {
		names->error = -ENOMEM;
		return;
	}
	name->rank = rank;
	name->holder = names->holder;
	name->text = edge->text;
}

/*---- Texts ----*/

static void set_proto(struct heap_reading *reading, struct heap_node *node)
{
	const struct function_name *name = find(reading->names, node->address);
	struct proto proto;

	if (heap_proto(reading, node->address, &proto))
		node->text = heap_proto_text(reading, &proto,
					     name ? heap_builder_string(reading->builder, name->text) : NULL,
					     0, false);
}

/* Those that hold something: of libraries of hundreds of functions, only few do. */
static void set_c_function(struct heap_reading *reading, struct heap_node *node)
{
	const struct heap_read_options *options = reading->options;
	const struct layout *layout = reading->layout;
	const uint8_t *object = heap_object(reading, node->address, layout->GCfuncC_upvalue);
	struct function_object function = { .address = node->address };
	char text[FRAME_LABEL_SIZE];

	if (!object || !options->name_c || heap_field(object, layout->GCfunc_nupvalues, 1) == 0)
		return;
	function.ffid = (uint8_t)heap_field(object, layout->GCfunc_ffid, 1);
	function.f = heap_field(object, layout->GCfuncC_f, sizeof(function.f));
	if (function.ffid == FF_LUA)
		return;
	if (options->name_c(options->context, &function, text))
		reading->names->error = -ENOMEM;
	else
		node->text = heap_builder_text(reading->builder, text, strlen(text));
}

static void set_function(struct heap_reading *reading, struct heap_node *node)
{
	const uint64_t address = proto_of(reading, node->address);
	const struct heap_node *proto;

	if (!address) {
		set_c_function(reading, node);
		return;
	}
	proto = heap_builder_node(reading->builder, heap_builder_find(reading->builder, address));
	node->text = proto->text;
	node->module = proto->module;
}

static void set_all(struct heap_reading *reading, enum heap_kind kind,
		    void (*set)(struct heap_reading *reading, struct heap_node *node))
{
	for (uint32_t i = 1; i < heap_builder_count(reading->builder); i++) {
		struct heap_node *node = heap_builder_node(reading->builder, i);

		if (node->kind == kind && !(node->flags & HEAP_DEAD))
			set(reading, node);
	}
}

int heap_names_set(struct heap_reading *reading)
{
	set_all(reading, HEAP_KIND_PROTO, set_proto);
	set_all(reading, HEAP_KIND_FUNCTION, set_function);
	return reading->names->error;
}
