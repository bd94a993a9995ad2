/* SPDX-License-Identifier: MIT */
#include "unwind/lua/value_capture.h"

#include <stdlib.h>
#include <string.h>

#include "memory/scatter.h"
#include "unwind/lua/luajit.h"

enum {
	BATCH = 512,       /* ranges for one read */
	HEADER_BYTES = 16, /* no object is smaller */
	KNOWN_SIZE = 4 * VALUE_OBJECTS_MAX,
	/*
	 * The values of stacks; those of their functions' upvalues; what is in tables of both, chunk names.
	 */
	PASSES = 3,
};

/* How much to copy of an object. */
enum depth { DEPTH_SLOT, DEPTH_UPVALUE, DEPTH_CONTENT };

struct object {
	uint64_t address;
	enum depth depth;
};

struct value_capture {
	struct snapshot *snapshot;
	const struct layout *layout;
	struct object objects[VALUE_OBJECTS_MAX];
	size_t count;
	uint64_t known[KNOWN_SIZE]; /* addresses of the objects, as an open hash table */
	struct memory_range batch[BATCH];
	size_t batch_count;
};

struct value_capture *value_capture_new(void)
{
	return calloc(1, sizeof(struct value_capture));
}

void value_capture_free(struct value_capture *values)
{
	free(values);
}

void value_capture_begin(struct value_capture *values, struct snapshot *snapshot, const struct layout *layout)
{
	values->snapshot = snapshot;
	values->layout = layout;
	values->count = 0;
	memset(values->known, 0, sizeof(values->known));
}

/*---- Objects ----*/

static bool add_object(struct value_capture *values, uint64_t address, enum depth depth)
{
	size_t at = (size_t)scatter(address) % KNOWN_SIZE;

	if (!may_be_object(values->layout->gc64, address))
		return true;
	for (; values->known[at]; at = (at + 1) % KNOWN_SIZE)
		if (values->known[at] == address)
			return true;
	if (values->count == VALUE_OBJECTS_MAX)
		return false;
	values->known[at] = address;
	values->objects[values->count++] = (struct object){ .address = address, .depth = depth };
	return true;
}

static bool is_collectable(int32_t tag)
{
	return tag <= TAG_STR && tag >= TAG_UDATA;
}

static bool add_value(struct value_capture *values, uint64_t value, enum depth depth)
{
	bool gc64 = values->layout->gc64;
	int32_t tag = tvalue_tag(gc64, value);

	/* Of what a table holds, only strings are shown. */
	if (!is_collectable(tag) || (depth == DEPTH_CONTENT && tag != TAG_STR))
		return true;
	return add_object(values, tvalue_object(gc64, value), depth);
}

bool value_capture_add(struct value_capture *values, uint64_t value)
{
	return add_value(values, value, DEPTH_SLOT);
}

bool value_capture_add_object(struct value_capture *values, uint64_t address)
{
	return add_object(values, address, DEPTH_SLOT);
}

/*---- Copying ----*/

static void flush(struct value_capture *values)
{
	if (values->batch_count)
		snapshot_capture(values->snapshot, values->batch, values->batch_count);
	values->batch_count = 0;
}

static void want(struct value_capture *values, uint64_t address, uint64_t length)
{
	if (length == 0)
		return;
	values->batch[values->batch_count++] = (struct memory_range){ .address = address,
								      .length = (size_t)length };
	if (values->batch_count == BATCH)
		flush(values);
}

/* An integer of what is copied. False if it is not. */
static bool load(const struct value_capture *values, uint64_t address, unsigned size, uint64_t *ret_value)
{
	const uint8_t *bytes = snapshot_view(values->snapshot, address, size);

	if (!bytes)
		return false;
	*ret_value = load_bytes(bytes, 0, size);
	return true;
}

static bool load_field(const struct value_capture *values, const struct object *object, int32_t offset,
		       unsigned size, uint64_t *ret_value)
{
	return load(values, object->address + (uint64_t)offset, size, ret_value);
}

static uint8_t type_of(const struct value_capture *values, const struct object *object)
{
	uint64_t gct;

	return load_field(values, object, values->layout->GChead_gct, 1, &gct) ? (uint8_t)gct : 0;
}

static void want_header(struct value_capture *values, const struct object *object)
{
	const struct layout *layout = values->layout;
	int32_t length = 0;

	switch (type_of(values, object)) {
	case GCT_STRING: length = layout->GCstr_size; break;
	case GCT_TABLE: length = object->depth < DEPTH_CONTENT ? layout->GCtab_size : 0; break;
	case GCT_FUNCTION: length = layout->GCfuncC_f + (int32_t)sizeof(uint64_t); break;
	case GCT_USERDATA: length = layout->GCudata_size; break;
	case GCT_CDATA: length = HEADER_BYTES + VALUE_CDATA_BYTES; break;
	default: break;
	}
	want(values, object->address, (uint64_t)length);
}

/* A part of a table: its beginning as far as it is copied. */
static uint64_t part_bytes(uint64_t count, uint64_t most, uint64_t size)
{
	return (count < most ? count : most) * size;
}

uint64_t value_array_bytes(const struct layout *layout, const uint8_t *header, uint64_t *ret_address)
{
	*ret_address = load_bytes(header, layout->GCtab_array, layout_ref_size(layout));
	return part_bytes(load_bytes(header, layout->GCtab_asize, 4), VALUE_TABLE_SLOTS, SLOT_SIZE);
}

uint64_t value_node_bytes(const struct layout *layout, const uint8_t *header, uint64_t *ret_address)
{
	*ret_address = load_bytes(header, layout->GCtab_node, layout_ref_size(layout));
	return part_bytes(load_bytes(header, layout->GCtab_hmask, 4) + 1, VALUE_TABLE_NODES,
			  (uint64_t)layout->Node_size);
}

static const uint8_t *view_table(const struct value_capture *values, const struct object *object)
{
	return object->depth < DEPTH_CONTENT && type_of(values, object) == GCT_TABLE
		       ? snapshot_view(values->snapshot, object->address, (size_t)values->layout->GCtab_size)
		       : NULL;
}

static void want_table(struct value_capture *values, const struct object *object)
{
	const uint8_t *header = view_table(values, object);
	uint64_t array, array_bytes, node, node_bytes;

	if (!header)
		return;
	/* Copying may move what header points to. */
	array_bytes = value_array_bytes(values->layout, header, &array);
	node_bytes = value_node_bytes(values->layout, header, &node);
	want(values, array, array_bytes);
	want(values, node, node_bytes);
}

static bool is_lua_function(const struct value_capture *values, const struct object *object)
{
	uint64_t ffid;

	return type_of(values, object) == GCT_FUNCTION &&
	       load_field(values, object, values->layout->GCfunc_ffid, 1, &ffid) && ffid == FF_LUA;
}

/* How many upvalues of a function to follow: those of functions on a stack, which may run. */
static unsigned upvalue_count(const struct value_capture *values, const struct object *object)
{
	uint64_t count;

	if (object->depth != DEPTH_SLOT || !is_lua_function(values, object) ||
	    !load_field(values, object, values->layout->GCfunc_nupvalues, 1, &count))
		return 0;
	return count < VALUE_UPVALUES_MAX ? (unsigned)count : VALUE_UPVALUES_MAX;
}

/* The prototype of a Lua function; 0 if there is none. */
static uint64_t proto_of(const struct value_capture *values, const struct object *object)
{
	uint64_t pc;

	if (!is_lua_function(values, object) ||
	    !load_field(values, object, values->layout->GCfunc_pc, layout_ref_size(values->layout), &pc))
		return 0;
	return pc - (uint64_t)values->layout->GCproto_size;
}

static void want_body(struct value_capture *values, const struct object *object)
{
	const struct layout *layout = values->layout;
	uint64_t length, proto;

	switch (type_of(values, object)) {
	case GCT_STRING:
		if (load_field(values, object, layout->GCstr_len, 4, &length))
			want(values, object->address + (uint64_t)layout->GCstr_size,
			     part_bytes(length, VALUE_STRING_BYTES, 1));
		break;
	case GCT_TABLE: want_table(values, object); break;
	case GCT_FUNCTION:
		proto = proto_of(values, object);
		if (proto)
			want(values, proto, (uint64_t)layout->GCproto_size);
		want(values, object->address + (uint64_t)layout->GCfuncL_uvptr,
		     (uint64_t)upvalue_count(values, object) * layout_ref_size(layout));
		break;
	default: break;
	}
}

/* The address of a function's upvalue. */
static bool upvalue_at(const struct value_capture *values, const struct object *object, unsigned index,
		       uint64_t *ret_upvalue)
{
	unsigned ref = layout_ref_size(values->layout);

	return load(values, object->address + (uint64_t)values->layout->GCfuncL_uvptr + (uint64_t)index * ref,
		    ref, ret_upvalue);
}

static void want_upvalues(struct value_capture *values, const struct object *object)
{
	unsigned count = upvalue_count(values, object);

	for (unsigned i = 0; i < count; i++) {
		uint64_t upvalue;

		if (upvalue_at(values, object, i, &upvalue))
			want(values, upvalue, (uint64_t)values->layout->GCupval_size);
	}
}

/* Where an upvalue's value is: in itself, or in a slot of a stack. */
static bool upvalue_place(const struct value_capture *values, const struct object *object, unsigned index,
			  uint64_t *ret_place)
{
	uint64_t upvalue;

	return upvalue_at(values, object, index, &upvalue) &&
	       load(values, upvalue + (uint64_t)values->layout->GCupval_v, layout_ref_size(values->layout),
		    ret_place);
}

static void want_upvalue_values(struct value_capture *values, const struct object *object)
{
	unsigned count = upvalue_count(values, object);

	for (unsigned i = 0; i < count; i++) {
		uint64_t place;

		if (upvalue_place(values, object, i, &place))
			want(values, place, SLOT_SIZE);
	}
}

/*---- What objects lead to ----*/

static void add_upvalues(struct value_capture *values, const struct object *object)
{
	unsigned count = upvalue_count(values, object);

	for (unsigned i = 0; i < count; i++) {
		uint64_t place, value;

		if (upvalue_place(values, object, i, &place) && load(values, place, SLOT_SIZE, &value))
			add_value(values, value, DEPTH_UPVALUE);
	}
}

static void add_words(struct value_capture *values, uint64_t address, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += SLOT_SIZE) {
		uint64_t value;

		if (load(values, address + at, SLOT_SIZE, &value))
			add_value(values, value, DEPTH_CONTENT);
	}
}

static void add_content(struct value_capture *values, const struct object *object)
{
	const struct layout *layout = values->layout;
	const uint8_t *header = view_table(values, object);
	uint64_t address, bytes, chunkname, proto = proto_of(values, object);

	if (header) {
		bytes = value_array_bytes(layout, header, &address);
		add_words(values, address, bytes);
		/* A node's link to the next one looks like no string. */
		bytes = value_node_bytes(layout, header, &address);
		add_words(values, address, bytes);
	}
	if (proto &&
	    load(values, proto + (uint64_t)layout->GCproto_chunkname, layout_ref_size(layout), &chunkname))
		add_object(values, chunkname, DEPTH_CONTENT);
}

typedef void step(struct value_capture *values, const struct object *object);

static void want_beginning(struct value_capture *values, const struct object *object)
{
	want(values, object->address, HEADER_BYTES);
}

static void each(struct value_capture *values, size_t begin, size_t end, step *visit)
{
	for (size_t i = begin; i < end; i++) {
		/* Objects that are added do not move those before them. */
		visit(values, &values->objects[i]);
	}
	flush(values);
}

void value_capture_copy(struct value_capture *values)
{
	static step *const steps[] = { want_beginning,      want_header,  want_body,  want_upvalues,
				       want_upvalue_values, add_upvalues, add_content };
	size_t begin = 0;

	for (unsigned pass = 0; pass < PASSES && begin < values->count; pass++) {
		size_t end = values->count;

		for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
			each(values, begin, end, steps[i]);
		begin = end;
	}
}
