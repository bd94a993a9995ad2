/* SPDX-License-Identifier: MIT */
/* List all objects of a global_State. */
#include "unwind/heap/heap_reading.h"

enum {
	OBJECT_BYTES_MIN = 16,    /* no object is smaller */
	OBJECTS_BEYOND = 1 << 20, /* more than the heap's size allows, as it may grow meanwhile */
	CHAIN_BIT = 1,            /* lowest bit of a bucket of the string table: secondary hashing */
};

/* Add the object. False if it is no object, or was added before. */
static bool add_object(struct heap_reading *reading, uint64_t address, struct heap_node *ret_node)
{
	struct heap_account *account = reading->account;

	if (!may_be_object(reading->gc64, address) || !heap_node_read(reading, address, ret_node))
		return false;
	if (reading->builder && heap_builder_add_node(reading->builder, ret_node) == HEAP_ROOT)
		return false;
	if (heap_copy_has_changed(reading->copy, address, 1))
		account->uncertain.changed_objects++;
	reading->objects++;
	reading->sum += ret_node->bytes;
	if (ret_node->flags & HEAP_DEAD) {
		account->dead_objects++;
		account->dead_bytes += ret_node->bytes;
	}
	return true;
}

static uint64_t next_of(const struct heap_reading *reading, uint64_t address)
{
	const uint8_t *object = heap_object(reading, address,
					    reading->layout->GChead_nextgc + (int32_t)reading->ref);

	return object ? heap_ref(reading, object, reading->layout->GChead_nextgc) : 0;
}

/* May there be one object more? */
static bool has_room(struct heap_reading *reading)
{
	if (reading->objects < reading->objects_max)
		return true;
	reading->account->uncertain.left_out++;
	return false;
}

/* False at the end of a chain that leads nowhere, or has one object more than there can be. */
static bool list_object(struct heap_reading *reading, uint64_t address, struct heap_node *ret_node)
{
	if (!has_room(reading))
		return false;
	if (add_object(reading, address, ret_node))
		return true;
	reading->account->uncertain.broken_chains++;
	return false;
}

/* Objects of one type, linked by nextgc. */
static void list_chain(struct heap_reading *reading, uint64_t address)
{
	struct heap_node node;

	for (; address && list_object(reading, address, &node); address = next_of(reading, address))
		;
}

/* Objects of all types, linked by nextgc, up to 0 or end. Only threads link their open upvalues. */
static void list_all(struct heap_reading *reading, uint64_t address, uint64_t end)
{
	struct heap_node node;

	for (; address && address != end && list_object(reading, address, &node);
	     address = next_of(reading, address)) {
		const uint8_t *thread = NULL;

		if (node.kind == HEAP_KIND_THREAD)
			thread = heap_object(reading, address, reading->layout->L_size);
		if (thread)
			list_chain(reading, heap_ref(reading, thread, reading->layout->L_openupval));
	}
}

/* Userdata that wait for finalizers are a ring, and gc.mmudata is its last. */
static void list_finalized(struct heap_reading *reading)
{
	struct heap_node node;

	if (!reading->gc.mmudata)
		return;
	list_all(reading, next_of(reading, reading->gc.mmudata), reading->gc.mmudata);
	if (!add_object(reading, reading->gc.mmudata, &node))
		reading->account->uncertain.broken_chains++;
}

static void list_strings(struct heap_reading *reading)
{
	const struct layout *layout = reading->layout;
	const uint8_t *g = heap_object(reading, reading->g, layout->GG_dispatch);
	uint64_t table, buckets;
	const uint8_t *bytes;

	if (!g)
		return;
	table = heap_ref(reading, g, layout->g_strhash);
	buckets = heap_field(g, layout->g_strmask, 4) + 1;
	bytes = heap_copy_view(reading->copy, table, (size_t)(buckets * reading->ref));
	if (!bytes) {
		reading->account->uncertain.unread_bytes += buckets * reading->ref;
		return;
	}
	for (uint64_t i = 0; i < buckets; i++)
		list_chain(reading,
			   load_bytes(bytes + i * reading->ref, 0, reading->ref) & ~(uint64_t)CHAIN_BIT);
}

static void list_parts(struct heap_reading *reading)
{
	for (size_t i = 0; i < reading->parts.count; i++) {
		const struct vm_part *part = &reading->parts.parts[i];
		struct heap_node node = {
			.bytes = part->bytes, .slots = part->slots, .used = part->used, .kind = HEAP_KIND_VM
		};
		uint32_t number;

		node.text = heap_builder_text(reading->builder, part->name, strlen(part->name));
		number = heap_builder_add_node(reading->builder, &node);
		if (i == 0)
			reading->first_part = number;
	}
}

void heap_list(struct heap_reading *reading)
{
	reading->objects_max = reading->gc.total / OBJECT_BYTES_MIN + OBJECTS_BEYOND;
	list_all(reading, reading->gc.root, 0);
	list_finalized(reading);
	list_strings(reading);
	for (size_t i = 0; i < reading->parts.count; i++)
		reading->sum += reading->parts.parts[i].bytes;
	if (reading->sum < reading->gc.total) {
		size_t known = reading->parts.count;

		vm_parts_add_snapshots(&reading->parts, reading->gc.total - reading->sum);
		for (size_t i = known; i < reading->parts.count; i++)
			reading->sum += reading->parts.parts[i].bytes;
	}
	if (reading->builder)
		list_parts(reading);
}
