/* SPDX-License-Identifier: MIT */
/* What each object refers to, as the collector's mark phase follows it (lj_gc.c). */
#include "unwind/heap/heap_reading.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory/word_hash.h"
#include "unwind/heap/heap_names.h"
#include "unwind/lua/lua_names.h"

enum {
	LJ_GC_FIXED = 0x20, /* marked: never collected (lj_gc.h) */
	POINTER = 8,
	IR_BYTES = 8,
	IR_OPCODE = 5,     /* offset of IRIns.o (lj_ir.h) */
	REF_BIAS = 0x8000, /* constants come before it */
	UDTYPE_BUFFER = 3, /* GCudata.udtype (lj_obj.h) */
	GCROOTS_MAX = 64,  /* GCROOT_MAX is some 40 */
	MMNAME_GC = 2,     /* GCROOT_MMNAME: index, newindex, gc, mode, ... (lj_obj.h: MMDEF) */
	MMNAME_MODE = 3,
	NUMBER_TEXT = 32,
	TAG_INT = ~13, /* LJ_TNUMX */
	TAG_TRUE = ~2,
	TAG_FALSE = ~1,
};

/* What is known of a metatable. */
struct metatable {
	uint64_t address;
	bool has_gc, weak_keys, weak_values;
	UT_hash_handle hh;
};

static const char *const kind_names[] = {
	[GCT_STRING] = "string",   [GCT_UPVALUE] = "upvalue",   [GCT_THREAD] = "thread",
	[GCT_PROTO] = "prototype", [GCT_FUNCTION] = "function", [GCT_TRACE] = "trace",
	[GCT_CDATA] = "cdata",     [GCT_TABLE] = "table",       [GCT_USERDATA] = "userdata",
};

/*---- Edges ----*/

static uint32_t literal(struct heap_reading *reading, const char *text)
{
	return heap_builder_text(reading->builder, text, strlen(text));
}

/* The type of object a tagged value holds; 0 if it holds none. */
static uint8_t value_gct(const struct heap_reading *reading, uint64_t value)
{
	int32_t type = ~tvalue_tag(reading->gc64, value);

	return type >= GCT_STRING && type <= GCT_USERDATA ? (uint8_t)type : 0;
}

/* The empty string is part of global_State, and no object of the heap. */
static bool is_in_global_state(const struct heap_reading *reading, uint64_t address)
{
	const struct layout *layout = reading->layout;
	int32_t end = layout->has_jit ? layout->GG_J : layout->GG_dispatch;

	return address >= reading->g && address - reading->g < (uint64_t)end;
}

void heap_refer(struct heap_reading *reading, uint64_t address, struct heap_edge edge)
{
	if (address == 0 || is_in_global_state(reading, address))
		return;
	edge.to = heap_builder_find(reading->builder, address);
	if (edge.to == HEAP_ROOT) {
		reading->account->uncertain.dangling++;
		return;
	}
	heap_names_note(reading, &edge);
	heap_builder_add_edge(reading->builder, &edge);
}

void heap_refer_value(struct heap_reading *reading, uint64_t value, struct heap_edge edge)
{
	uint8_t gct = value_gct(reading, value);

	if (!gct)
		return;
	/* Weak tables hold strings like any other (lj_gc.c: gc_mayclear). */
	if (gct == GCT_STRING)
		edge.weak = false;
	heap_refer(reading, tvalue_object(reading->gc64, value), edge);
}

/*---- Tables ----*/

/* A table's nodes, *ret_count of them. NULL if it is none, or cannot be read. */
static const uint8_t *table_nodes(struct heap_reading *reading, uint64_t table, uint64_t *ret_count)
{
	const struct layout *layout = reading->layout;
	const uint8_t *object = heap_object(reading, table, layout->GCtab_size);

	if (!object || heap_field(object, layout->GChead_gct, 1) != GCT_TABLE)
		return NULL;
	*ret_count = heap_field(object, layout->GCtab_hmask, 4) + 1;
	return heap_object(reading, heap_ref(reading, object, layout->GCtab_node),
			   (int64_t)(*ret_count * (uint64_t)layout->Node_size));
}

/* The string key's value in a small table: what is at its slots is compared by address. */
static bool find_field(struct heap_reading *reading, uint64_t table, uint64_t key, uint64_t *ret_value)
{
	const struct layout *layout = reading->layout;
	uint64_t count = 0;
	const uint8_t *nodes = table_nodes(reading, table, &count);

	for (uint64_t i = 0; nodes && i < count; i++, nodes += layout->Node_size) {
		uint64_t found = heap_field(nodes, layout->Node_key, SLOT_SIZE);

		if (value_gct(reading, found) != GCT_STRING || tvalue_object(reading->gc64, found) != key)
			continue;
		*ret_value = heap_field(nodes, layout->Node_val, SLOT_SIZE);
		return tvalue_tag(reading->gc64, *ret_value) != -1;
	}
	return false;
}

static uint64_t gcroot(struct heap_reading *reading, size_t index)
{
	const uint8_t *bytes = heap_object(
		reading, reading->g + (uint64_t)reading->layout->g_gcroot + index * reading->ref,
		(int64_t)reading->ref);

	return bytes ? heap_ref(reading, bytes, 0) : 0;
}

/* Does the string hold this letter? */
static bool has_letter(struct heap_reading *reading, uint64_t value, char letter)
{
	const struct layout *layout = reading->layout;
	uint64_t string = tvalue_object(reading->gc64, value), length;
	const uint8_t *bytes;

	if (value_gct(reading, value) != GCT_STRING)
		return false;
	bytes = heap_object(reading, string, layout->GCstr_size);
	length = bytes ? heap_field(bytes, layout->GCstr_len, 4) : 0;
	bytes = heap_copy_view(reading->copy, string + (uint64_t)layout->GCstr_size, (size_t)length);
	return bytes && length && memchr(bytes, letter, (size_t)length);
}

/* NULL when memory is short. */
static const struct metatable *metatable_of(struct heap_reading *reading, uint64_t address)
{
	struct metatable *known;
	uint64_t value;

	HASH_FIND(hh, reading->metatables, &address, sizeof(address), known);
	if (known)
		return known;
	known = calloc(1, sizeof(*known));
	if (!known)
		return NULL;
	known->address = address;
	known->has_gc = find_field(reading, address, gcroot(reading, MMNAME_GC), &value);
	if (find_field(reading, address, gcroot(reading, MMNAME_MODE), &value)) {
		known->weak_keys = has_letter(reading, value, 'k');
		known->weak_values = has_letter(reading, value, 'v');
	}
	HASH_ADD(hh, reading->metatables, address, sizeof(known->address), known);
	if (hash_added(&known->hh))
		return known;
	free(known);
	return NULL;
}

static void forget_metatables(struct heap_reading *reading)
{
	HASH_FREE_ALL(reading->metatables);
}

/* An edge for a value by its numeric key. */
static struct heap_edge edge_of_number(struct heap_reading *reading, double number)
{
	char text[NUMBER_TEXT];

	if (number >= INT32_MIN && number <= INT32_MAX && number == (int32_t)number)
		return (struct heap_edge){ .hold = HEAP_HOLDS_INDEX, .number = (int32_t)number };
	snprintf(text, sizeof(text), "%.14g", number);
	return (struct heap_edge){ .hold = HEAP_HOLDS_VALUE, .text = literal(reading, text) };
}

/* A light userdata without GC64 has these 17 bits in front (lj_obj.h: tvislightud). */
static bool is_light_userdata(const struct heap_reading *reading, int32_t tag)
{
	return reading->gc64 ? tag == TAG_LIGHTUD : tag >> 15 == -2;
}

static struct heap_edge edge_of_key(struct heap_reading *reading, uint64_t key)
{
	const int32_t tag = tvalue_tag(reading->gc64, key);
	const uint8_t gct = value_gct(reading, key);
	struct heap_edge edge = { .hold = HEAP_HOLDS_VALUE };
	double number;

	if (gct == GCT_STRING) {
		edge.hold = HEAP_HOLDS_FIELD;
		edge.text = heap_string_text(reading, tvalue_object(reading->gc64, key));
	} else if (gct) {
		edge.text = literal(reading, kind_names[gct]);
	} else if (tag == TAG_INT) {
		edge.hold = HEAP_HOLDS_INDEX;
		edge.number = (int32_t)(uint32_t)key;
	} else if (tag == TAG_TRUE || tag == TAG_FALSE) {
		edge.text = literal(reading, tag == TAG_TRUE ? "true" : "false");
	} else if (is_light_userdata(reading, tag)) {
		edge.text = literal(reading, "light userdata");
	} else {
		memcpy(&number, &key, sizeof(number));
		edge = edge_of_number(reading, number);
	}
	return edge;
}

/* Keys of CTState.miscmap are slots of callbacks, and -id of C types with metatables (lj_ctype.h). */
static struct heap_edge edge_of_miscmap(struct heap_reading *reading, struct heap_edge edge)
{
	if (edge.hold != HEAP_HOLDS_INDEX)
		return edge;
	return (struct heap_edge){ .hold = HEAP_HOLDS_OTHER,
				   .text = literal(reading, edge.number < 0 ? "metatable" : "callback") };
}

static void refer_node(struct heap_reading *reading, const uint8_t *node, const struct metatable *metatable,
		       bool misc)
{
	const uint64_t key = heap_field(node, reading->layout->Node_key, SLOT_SIZE);
	const uint64_t value = heap_field(node, reading->layout->Node_val, SLOT_SIZE);
	struct heap_edge edge;

	if (tvalue_tag(reading->gc64, value) == -1) /* its key may be dead */
		return;
	if (value_gct(reading, key))
		heap_refer_value(reading, key,
				 (struct heap_edge){ .hold = HEAP_HOLDS_KEY,
						     .weak = metatable && metatable->weak_keys });
	if (!value_gct(reading, value))
		return;
	edge = edge_of_key(reading, key);
	if (misc)
		edge = edge_of_miscmap(reading, edge);
	edge.weak = metatable && metatable->weak_values;
	heap_refer_value(reading, value, edge);
}

static void refer_table(struct heap_reading *reading, uint32_t number, const uint8_t *object)
{
	const struct layout *layout = reading->layout;
	const uint64_t metatable = heap_ref(reading, object, layout->GCtab_metatable);
	const struct metatable *known = metatable ? metatable_of(reading, metatable) : NULL;
	const uint64_t asize = heap_field(object, layout->GCtab_asize, 4),
		       hmask = heap_field(object, layout->GCtab_hmask, 4);
	struct heap_node *node = heap_builder_node(reading->builder, number);
	const bool misc = node->address == reading->parts.miscmap;
	const uint8_t *values;

	heap_names_start(reading->names, number, node->address, hmask + 1);
	if (known && (known->weak_keys || known->weak_values))
		node->flags |= HEAP_WEAK;
	heap_refer(reading, metatable, (struct heap_edge){ .hold = HEAP_HOLDS_METATABLE });
	values = asize ? heap_copy_view(reading->copy, heap_ref(reading, object, layout->GCtab_array),
					(size_t)(asize * SLOT_SIZE))
		       : NULL;
	for (uint64_t i = 0; values && i < asize; i++) {
		struct heap_edge edge = { .hold = HEAP_HOLDS_INDEX, .number = (int32_t)i };

		if (misc)
			edge = edge_of_miscmap(reading, edge);
		edge.weak = known && known->weak_values;
		heap_refer_value(reading, load_bytes(values + i * SLOT_SIZE, 0, SLOT_SIZE), edge);
	}
	values = hmask ? heap_copy_view(reading->copy, heap_ref(reading, object, layout->GCtab_node),
					(size_t)((hmask + 1) * (uint64_t)layout->Node_size))
		       : NULL;
	for (uint64_t i = 0; values && i <= hmask; i++)
		refer_node(reading, values + i * (uint64_t)layout->Node_size, known, misc);
}

/*---- Functions, prototypes, upvalues ----*/

static void refer_lua_function(struct heap_reading *reading, const uint8_t *object)
{
	const struct layout *layout = reading->layout;
	uint64_t proto_address = heap_ref(reading, object, layout->GCfunc_pc) -
				 (uint64_t)layout->GCproto_size;
	uint32_t upvalues = (uint32_t)heap_field(object, layout->GCfunc_nupvalues, 1);
	struct proto proto;
	bool has_proto = heap_proto(reading, proto_address, &proto);

	heap_refer(reading, proto_address, (struct heap_edge){ .hold = HEAP_HOLDS_PROTO });
	for (uint32_t i = 0; i < upvalues; i++) {
		struct heap_edge edge = { .hold = HEAP_HOLDS_UPVALUE, .number = (int32_t)i };
		const char *name;

		if (has_proto && lua_upvalue_name(layout, &proto, i, &name))
			edge.text = literal(reading, name);
		heap_refer(reading,
			   heap_ref(reading, object, layout->GCfuncL_uvptr + (int32_t)(i * reading->ref)),
			   edge);
	}
}

static void refer_function(struct heap_reading *reading, uint64_t address, const uint8_t *object)
{
	const struct layout *layout = reading->layout;
	const bool lua = heap_field(object, layout->GCfunc_ffid, 1) == FF_LUA;
	const uint64_t upvalues = heap_field(object, layout->GCfunc_nupvalues, 1);

	object = heap_object(reading, address,
			     lua ? layout->GCfuncL_uvptr + (int64_t)(upvalues * reading->ref)
				 : layout->GCfuncC_upvalue + (int64_t)(upvalues * SLOT_SIZE));
	if (!object)
		return;
	heap_refer(reading, heap_ref(reading, object, layout->GCfunc_env),
		   (struct heap_edge){ .hold = HEAP_HOLDS_ENVIRONMENT });
	if (lua) {
		refer_lua_function(reading, object);
		return;
	}
	for (uint64_t i = 0; i < upvalues; i++)
		heap_refer_value(
			reading,
			heap_field(object, layout->GCfuncC_upvalue + (int32_t)(i * SLOT_SIZE), SLOT_SIZE),
			(struct heap_edge){ .hold = HEAP_HOLDS_UPVALUE, .number = (int32_t)i });
}

uint64_t heap_trace_address(struct heap_reading *reading, uint32_t number)
{
	const struct layout *layout = reading->layout;
	const uint8_t *fields;
	uint64_t table, size;

	if (!layout->has_jit || number == 0)
		return 0;
	fields = heap_object(reading, reading->g + (uint64_t)(layout->GG_J + layout->J_trace),
			     layout->J_sizetrace - layout->J_trace + 4);
	if (!fields)
		return 0;
	table = load_bytes(fields, 0, POINTER);
	size = heap_field(fields, layout->J_sizetrace - layout->J_trace, 4);
	fields = number < size ? heap_object(reading, table + number * reading->ref, reading->ref) : NULL;
	return fields ? heap_ref(reading, fields, 0) : 0;
}

static void refer_trace_number(struct heap_reading *reading, uint32_t number)
{
	const uint64_t address = heap_trace_address(reading, number);

	if (address)
		heap_refer(reading, address,
			   (struct heap_edge){ .hold = HEAP_HOLDS_TRACE, .number = (int32_t)number });
}

static void refer_proto(struct heap_reading *reading, uint32_t number, uint64_t address)
{
	const struct layout *layout = reading->layout;
	struct heap_node *node = heap_builder_node(reading->builder, number);
	struct proto proto;
	uint64_t constants, count, at;

	if (!heap_proto(reading, address, &proto))
		return;
	node->module = heap_proto_file(reading, &proto);
	constants = heap_ref(reading, proto.bytes, layout->GCproto_k);
	count = heap_field(proto.bytes, layout->GCproto_sizekgc, 4);
	for (uint64_t i = 1; i <= count; i++) {
		at = 0;
		if (!proto_load(&proto, constants - i * reading->ref, &at, reading->ref))
			break;
		heap_refer(reading, at, (struct heap_edge){ .hold = HEAP_HOLDS_CONSTANT });
	}
	heap_refer(reading, heap_ref(reading, proto.bytes, layout->GCproto_chunkname),
		   (struct heap_edge){ .hold = HEAP_HOLDS_CONSTANT });
	refer_trace_number(reading, (uint32_t)heap_field(proto.bytes, layout->GCproto_trace, 2));
}

static void refer_upvalue(struct heap_reading *reading, const uint8_t *object)
{
	const uint8_t *value = heap_object(reading, heap_ref(reading, object, reading->layout->GCupval_v),
					   SLOT_SIZE);

	if (value)
		heap_refer_value(reading, load_bytes(value, 0, SLOT_SIZE),
				 (struct heap_edge){ .hold = HEAP_HOLDS_CLOSED });
}

/*---- Other objects ----*/

/* Objects among a trace's constants: what leads to no object is half of another constant. */
static void refer_constants(struct heap_reading *reading, const uint8_t *object)
{
	const struct layout *layout = reading->layout;
	uint64_t first = heap_field(object, layout->GCtrace_nk, 4);
	const uint8_t *ir;

	if (first >= REF_BIAS)
		return;
	ir = heap_object(reading, heap_field(object, layout->GCtrace_ir, POINTER) + first * IR_BYTES,
			 (int64_t)(REF_BIAS - first) * IR_BYTES);
	for (; ir && first + 1 < REF_BIAS; first++, ir += IR_BYTES) {
		uint64_t constant = reading->gc64 ? load_bytes(ir + IR_BYTES, 0, POINTER)
						  : load_bytes(ir, 0, 4);

		if (ir[IR_OPCODE] == layout->IR_KGC &&
		    heap_builder_find(reading->builder, constant) != HEAP_ROOT)
			heap_refer(reading, constant, (struct heap_edge){ .hold = HEAP_HOLDS_CONSTANT });
	}
}

static void refer_trace(struct heap_reading *reading, const uint8_t *object)
{
	const struct layout *layout = reading->layout;

	if (heap_field(object, layout->GCtrace_traceno, 2) == 0)
		return;
	refer_constants(reading, object);
	heap_refer(reading, heap_ref(reading, object, layout->GCtrace_startpt),
		   (struct heap_edge){ .hold = HEAP_HOLDS_PROTO });
	refer_trace_number(reading, (uint32_t)heap_field(object, layout->GCtrace_link, 2));
	refer_trace_number(reading, (uint32_t)heap_field(object, layout->GCtrace_nextroot, 2));
	refer_trace_number(reading, (uint32_t)heap_field(object, layout->GCtrace_nextside, 2));
}

/*
 * SBufExt: w, e, b, L, cowref, r, dict_str, dict_mt, of which L, cowref and the last two are references
 * (lj_buf.h).
 */
static void refer_buffer(struct heap_reading *reading, uint64_t payload)
{
	enum { COW = 2, L_FLAGS = 3 * POINTER };
	const int ref = (int)reading->ref, cowref = L_FLAGS + ref, dict = cowref + ref + POINTER;
	const uint8_t *buffer = heap_object(reading, payload, dict + 2 * ref);
	const struct heap_edge edge = { .hold = HEAP_HOLDS_OTHER, .text = literal(reading, "buffer") };

	if (!buffer)
		return;
	if (buffer[L_FLAGS] & COW)
		heap_refer(reading, heap_ref(reading, buffer, cowref), edge);
	for (int i = 0; i < 2; i++)
		heap_refer(reading, heap_ref(reading, buffer, dict + i * ref), edge);
}

static void refer_userdata(struct heap_reading *reading, uint32_t number, const uint8_t *object)
{
	static const char *const types[] = { NULL, "file", "C library", "string.buffer" };
	const struct layout *layout = reading->layout;
	struct heap_node *node = heap_builder_node(reading->builder, number);
	uint64_t metatable = heap_ref(reading, object, layout->GCudata_metatable);
	uint8_t type = (uint8_t)heap_field(object, layout->GChead_gct + 1, 1);
	const struct metatable *known = metatable ? metatable_of(reading, metatable) : NULL;

	if (known && known->has_gc)
		node->flags |= HEAP_FINALIZER;
	if (type < sizeof(types) / sizeof(types[0]) && types[type])
		node->text = literal(reading, types[type]);
	heap_refer(reading, metatable, (struct heap_edge){ .hold = HEAP_HOLDS_METATABLE });
	heap_refer(reading, heap_ref(reading, object, layout->GCudata_env),
		   (struct heap_edge){ .hold = HEAP_HOLDS_ENVIRONMENT });
	if (type == UDTYPE_BUFFER)
		refer_buffer(reading, node->address + (uint64_t)layout->GCudata_size);
}

static void refer_thread(struct heap_reading *reading, uint32_t number, const uint8_t *object)
{
	heap_names_start(reading->names, number, heap_builder_node(reading->builder, number)->address, 0);
	heap_refer(reading, heap_ref(reading, object, reading->layout->L_env),
		   (struct heap_edge){ .hold = HEAP_HOLDS_ENVIRONMENT });
	heap_refer_stack(reading, number);
}

static void refer_object(struct heap_reading *reading, uint32_t number)
{
	struct heap_node *node = heap_builder_node(reading->builder, number);
	const struct layout *layout = reading->layout;
	const uint64_t address = node->address;
	const int32_t sizes[HEAP_KIND_COUNT] = {
		[HEAP_KIND_STRING] = layout->GCstr_size,      [HEAP_KIND_UPVALUE] = layout->GCupval_size,
		[HEAP_KIND_THREAD] = layout->L_size,          [HEAP_KIND_PROTO] = layout->GCproto_size,
		[HEAP_KIND_FUNCTION] = layout->GCfuncL_uvptr, [HEAP_KIND_TRACE] = layout->GCtrace_size,
		[HEAP_KIND_CDATA] = layout->GChead_gct + 3,   [HEAP_KIND_TABLE] = layout->GCtab_size,
		[HEAP_KIND_USERDATA] = layout->GCudata_size,
	};
	const uint8_t *object = sizes[node->kind] > 0 ? heap_object(reading, address, sizes[node->kind])
						      : NULL;

	/* What a dead object refers to may be freed already. */
	if (!object || node->flags & HEAP_DEAD)
		return;
	switch ((enum heap_kind)node->kind) {
	case HEAP_KIND_STRING:
		if (reading->options->strings)
			node->text = heap_string_text(reading, address);
		break;
	case HEAP_KIND_CDATA:
		node->text = heap_ctype_text(reading, address,
					     (uint32_t)heap_field(object, layout->GChead_gct + 1, 2));
		break;
	case HEAP_KIND_UPVALUE: refer_upvalue(reading, object); break;
	case HEAP_KIND_THREAD: refer_thread(reading, number, object); break;
	case HEAP_KIND_PROTO: refer_proto(reading, number, address); break;
	case HEAP_KIND_FUNCTION: refer_function(reading, address, object); break;
	case HEAP_KIND_TRACE: refer_trace(reading, object); break;
	case HEAP_KIND_TABLE: refer_table(reading, number, object); break;
	case HEAP_KIND_USERDATA: refer_userdata(reading, number, object); break;
	case HEAP_KIND_ROOT:
	case HEAP_KIND_VM:
	case HEAP_KIND_COUNT: break;
	}
}

/*---- The root ----*/

static void refer_root(struct heap_reading *reading, uint64_t address, const char *text)
{
	heap_refer(reading, address,
		   (struct heap_edge){ .hold = HEAP_HOLDS_ROOT, .text = literal(reading, text) });
}

/* The string key of a table by its contents; few tables are searched so. */
static uint64_t find_named(struct heap_reading *reading, uint64_t table, const char *name)
{
	const struct layout *layout = reading->layout;
	const uint32_t wanted = literal(reading, name);
	uint64_t count = 0;
	const uint8_t *nodes = table_nodes(reading, table, &count);

	for (uint64_t i = 0; nodes && i < count; i++, nodes += layout->Node_size) {
		uint64_t key = heap_field(nodes, layout->Node_key, SLOT_SIZE),
			 value = heap_field(nodes, layout->Node_val, SLOT_SIZE);

		if (value_gct(reading, key) == GCT_STRING && value_gct(reading, value) &&
		    heap_string_text(reading, tvalue_object(reading->gc64, key)) == wanted)
			return tvalue_object(reading->gc64, value);
	}
	return 0;
}

/* package.loaded, and the tables in it. */
static void add_modules(struct heap_reading *reading, uint64_t loaded)
{
	const struct layout *layout = reading->layout;
	uint64_t count = 0;
	const uint8_t *nodes = table_nodes(reading, loaded, &count);

	heap_names_add_module(reading->names, loaded);
	for (uint64_t i = 0; nodes && i < count; i++, nodes += layout->Node_size) {
		uint64_t value = heap_field(nodes, layout->Node_val, SLOT_SIZE);

		if (value_gct(reading, value) == GCT_TABLE)
			heap_names_add_module(reading->names, tvalue_object(reading->gc64, value));
	}
}

/* The metatables of basic types follow the names of metamethods in gcroot, then the default files, ... */
static void refer_gcroots(struct heap_reading *reading)
{
	static const char *const names[] = {
		"metatable of nil",
		"metatable of booleans",
		"metatable of booleans",
		"metatable of light userdata",
		"metatable of strings",
		"gcroot",
		"metatable of threads",
		"gcroot",
		"metatable of functions",
		"gcroot",
		"metatable of cdata",
		"metatable of tables",
		"metatable of userdata",
		"metatable of numbers",
		"io.input()",
		"io.output()",
		"finalizers",
	};
	const struct layout *layout = reading->layout;
	int32_t end = layout->has_jit ? layout->GG_J : layout->GG_dispatch;
	size_t count = (size_t)(end - layout->g_gcroot) / reading->ref, first = 0;

	if (count > GCROOTS_MAX)
		count = GCROOTS_MAX;
	while (first < count) {
		uint32_t node = heap_builder_find(reading->builder, gcroot(reading, first));

		if (node == HEAP_ROOT || heap_builder_node(reading->builder, node)->kind != HEAP_KIND_STRING)
			break;
		refer_root(reading, gcroot(reading, first++), "name of a metamethod");
	}
	for (size_t i = first; i < count; i++)
		if (heap_builder_find(reading->builder, gcroot(reading, i)) != HEAP_ROOT)
			refer_root(reading, gcroot(reading, i),
				   i - first < sizeof(names) / sizeof(names[0]) ? names[i - first]
										: "gcroot");
}

/* Strings that are never collected: words of the language, names of C types. */
static void refer_fixed(struct heap_reading *reading)
{
	for (uint32_t i = 1; i < heap_builder_count(reading->builder); i++) {
		const struct heap_node *node = heap_builder_node(reading->builder, i);
		const uint8_t *object = node->kind == HEAP_KIND_STRING
						? heap_object(reading, node->address,
							      reading->layout->GCstr_size)
						: NULL;

		if (object && heap_field(object, reading->layout->GChead_marked, 1) & LJ_GC_FIXED)
			refer_root(reading, node->address, "fixed string");
	}
}

static void refer_globals(struct heap_reading *reading)
{
	const struct layout *layout = reading->layout;
	const uint8_t *bytes = heap_object(reading, reading->g + (uint64_t)layout->g_registrytv, SLOT_SIZE);
	const uint8_t *thread = heap_object(reading, reading->mainthread, layout->L_size);
	uint64_t registry = bytes ? tvalue_object(reading->gc64, load_bytes(bytes, 0, SLOT_SIZE)) : 0;
	uint64_t globals = thread ? heap_ref(reading, thread, layout->L_env) : 0;
	uint64_t loaded = find_named(reading, registry, "_LOADED");

	heap_names_add_module(reading->names, globals);
	add_modules(reading, loaded);
	refer_root(reading, globals, "_G");
	refer_root(reading, loaded, "package.loaded");
	refer_root(reading, registry, "registry");
	refer_root(reading, reading->mainthread, "main thread");
	if (layout->g_vmthref >= 0) {
		bytes = heap_object(reading, reading->g + (uint64_t)layout->g_vmthref, reading->ref);
		if (bytes)
			refer_root(reading, heap_ref(reading, bytes, 0), "VM thread");
	}
}

static void refer_running(struct heap_reading *reading)
{
	const uint8_t *bytes = reading->layout->g_cur_L >= 0
				       ? heap_object(reading, reading->g + (uint64_t)reading->layout->g_cur_L,
						     reading->ref)
				       : NULL;
	uint64_t thread = bytes ? heap_ref(reading, bytes, 0) : 0;

	/* An event loop that waits runs no coroutine; cur_L is then the last one, and may be gone. */
	if (thread != reading->mainthread && heap_builder_find(reading->builder, thread) != HEAP_ROOT) {
		const uint8_t *object = heap_object(reading, thread, reading->layout->L_size);

		if (object && heap_field(object, reading->layout->L_cframe, POINTER))
			refer_root(reading, thread, "running coroutine");
	}
}

static void refer_waiting(struct heap_reading *reading)
{
	uint64_t first = reading->gc.mmudata, at = first;

	for (uint64_t i = 0; at && i < reading->objects; i++) {
		const uint8_t *object = heap_object(reading, at,
						    reading->layout->GChead_nextgc + (int32_t)reading->ref);

		refer_root(reading, at, "waits for its finalizer");
		at = object ? heap_ref(reading, object, reading->layout->GChead_nextgc) : 0;
		if (at == first)
			break;
	}
}

static void refer_parts(struct heap_reading *reading)
{
	for (size_t i = 0; i < reading->parts.count; i++) {
		struct heap_edge edge = { .to = reading->first_part + (uint32_t)i,
					  .hold = HEAP_HOLDS_ROOT,
					  .text = literal(reading, reading->parts.parts[i].name) };

		heap_builder_add_edge(reading->builder, &edge);
	}
	if (reading->parts.miscmap)
		refer_root(reading, reading->parts.miscmap, "FFI");
	if (reading->parts.finalizer)
		refer_root(reading, reading->parts.finalizer, "finalizers");
}

static void refer_all(struct heap_reading *reading)
{
	heap_builder_start_edges(reading->builder, HEAP_ROOT);
	refer_globals(reading);
	refer_running(reading);
	refer_gcroots(reading);
	refer_waiting(reading);
	refer_parts(reading);
	refer_fixed(reading);
	for (uint32_t i = 1; i < heap_builder_count(reading->builder); i++) {
		heap_builder_start_edges(reading->builder, i);
		refer_object(reading, i);
	}
}

int heap_add_references(struct heap_reading *reading)
{
	int error = -ENOMEM;

	reading->names = heap_names_new();
	reading->stacks = heap_stacks_new(reading);
	if (reading->names && reading->stacks) {
		refer_all(reading);
		error = heap_names_set(reading);
	}
	forget_metatables(reading);
	heap_stacks_free(reading->stacks);
	heap_names_free(reading->names);
	return error;
}
