/* SPDX-License-Identifier: MIT */
#include "unwind/lua/lua_objects.h"

#include <stdlib.h>
#include <string.h>

#include "memory/word_hash.h"
#include "unwind/lua/luajit.h"

/* No structure's header is larger in any layout. */
enum { HEADER_MAX = 128, BATCH = 512, UPVALUES_MAX = 60 }; /* LJ_MAX_UPVAL */

struct proto_entry {
	struct proto proto;
	uint64_t seen;                    /* the last snapshot that confirmed it */
	uint8_t header[HEADER_MAX];       /* as last seen, changing fields cleared */
	uint8_t chunk_header[HEADER_MAX]; /* GCstr of the chunk name: length and hash identify it */
	uint8_t *bytes;
	uint64_t chunk; /* address of that GCstr */
	UT_hash_handle hh;
};

struct function_entry {
	struct function_object object;
	uint64_t seen; /* the last snapshot that read it */
	UT_hash_handle hh;
};

/* An upvalue of a function. */
struct upvalue_key {
	uint64_t function;
	uint64_t index;
};

struct upvalue_entry {
	struct upvalue_key key;
	uint64_t value; /* GCfunc */
	UT_hash_handle hh;
};

struct lua_objects {
	struct function_entry *functions;
	struct upvalue_entry *upvalues; /* of the current snapshot */
	struct proto_entry *protos;
	struct proto_entry *retired; /* replaced during this snapshot, chained by hh.next */
	uint64_t snapshot;           /* number of the current one */
	uint64_t next_serial;
	bool learn;         /* keep new prototypes */
	size_t proto_bytes; /* held for prototypes */
	bool overfull;
	struct proto_entry **by_address; /* the prototypes of the current snapshot */
	size_t by_address_count, by_address_size;
	bool by_address_is_sorted;
};

struct lua_objects *lua_objects_new(void)
{
	return calloc(1, sizeof(struct lua_objects));
}

static size_t held(const struct proto_entry *entry)
{
	return sizeof(*entry) + entry->proto.size + strlen(entry->proto.chunkname);
}

static void free_proto(struct proto_entry *entry)
{
	free(entry->bytes);
	free(entry->proto.chunkname);
	free(entry);
}

static void free_retired(struct lua_objects *objects)
{
	while (objects->retired) {
		struct proto_entry *entry = objects->retired;

		objects->retired = entry->hh.next;
		objects->proto_bytes -= held(entry);
		free_proto(entry);
	}
}

static void forget_upvalues(struct lua_objects *objects)
{
	HASH_FREE_ALL(objects->upvalues);
}

static void forget_all(struct lua_objects *objects)
{
	struct proto_entry *proto, *next_proto;

	HASH_FREE_ALL(objects->functions);
	HASH_ITER(hh, objects->protos, proto, next_proto) {
		HASH_DEL(objects->protos, proto);
		objects->proto_bytes -= held(proto);
		free_proto(proto);
	}
	free_retired(objects);
}

void lua_objects_free(struct lua_objects *objects)
{
	if (!objects)
		return;
	forget_all(objects);
	forget_upvalues(objects);
	free(objects->by_address);
	free(objects);
}

/* The prototype is valid in the current snapshot. */
static void mark_seen(struct lua_objects *objects, struct proto_entry *entry)
{
	if (entry->seen == objects->snapshot)
		return;
	if (objects->by_address_count == objects->by_address_size) {
		size_t size = objects->by_address_size ? objects->by_address_size * 2 : 256;
		struct proto_entry **larger = realloc(objects->by_address,
						      size * sizeof(struct proto_entry *));

		if (!larger)
			return;
		objects->by_address = larger;
		objects->by_address_size = size;
	}
	entry->seen = objects->snapshot;
	objects->by_address[objects->by_address_count++] = entry;
	objects->by_address_is_sorted = false;
}

void lua_objects_begin(struct lua_objects *objects, bool learn)
{
	objects->learn = learn;
	objects->snapshot++;
	objects->by_address_count = 0;
	forget_upvalues(objects);
	free_retired(objects);
	if (objects->overfull || HASH_COUNT(objects->functions) > LUA_OBJECTS_MAX ||
	    HASH_COUNT(objects->protos) > LUA_OBJECTS_MAX || objects->proto_bytes > LUA_OBJECTS_BYTES_MAX)
		forget_all(objects);
	objects->overfull = false;
}

/*---- Prototypes ----*/

/*
 * Clear the fields that LuaJIT changes during an object's life: GC lists and colour,
 * JIT flags, root trace. GCproto.gclist, which each collection sets, precedes GCproto.k.
 */
static void clear_changing_fields(const struct layout *layout, uint8_t *header)
{
	const unsigned ref = layout_ref_size(layout);

	memset(header + layout->GChead_nextgc, 0, ref);
	memset(header + layout->GCproto_k - ref, 0, ref);
	header[layout->GChead_marked] = 0;
	header[layout->GCproto_flags] = 0;
	memset(header + layout->GCproto_trace, 0, sizeof(uint16_t));
}

static struct proto_entry *find_proto(const struct lua_objects *objects, uint64_t address)
{
	struct proto_entry *entry;

	HASH_FIND(hh, objects->protos, &address, sizeof(address), entry);
	return entry;
}

bool proto_from_header(const struct layout *layout, const uint8_t *header, uint64_t address,
		       struct proto *ret_proto)
{
	uint64_t sizept = load_bytes(header, layout->GCproto_sizept, 4);
	uint64_t sizebc = load_bytes(header, layout->GCproto_sizebc, 4);

	if (load_bytes(header, layout->GChead_gct, 1) != GCT_PROTO)
		return false;
	if (sizept > PROTO_BYTES_MAX || sizebc == 0 ||
	    sizebc * BYTECODE_SIZE + (uint64_t)layout->GCproto_size > sizept)
		return false;
	*ret_proto = (struct proto){
		.address = address,
		.size = sizept,
		.sizebc = (uint32_t)sizebc,
		.firstline = (uint32_t)load_bytes(header, layout->GCproto_firstline, 4),
		.numline = (uint32_t)load_bytes(header, layout->GCproto_numline, 4),
		.framesize = header[layout->GCproto_framesize],
		.numparams = header[layout->GCproto_numparams],
		.flags = header[layout->GCproto_flags],
		.bc = address + (uint64_t)layout->GCproto_size,
	};
	return true;
}

/* A prototype that is new, or replaces another one at its address. */
struct new_proto {
	uint64_t address;
	uint64_t chunk;
	struct proto proto;
	uint8_t header[HEADER_MAX];
	uint8_t chunk_header[HEADER_MAX];
};

static void add_proto(struct lua_objects *objects, const struct layout *layout, const struct new_proto *found,
		      const uint8_t *bytes, const char *chunkname, size_t chunkname_length)
{
	struct proto_entry *entry = calloc(1, sizeof(*entry));
	struct proto_entry *old = find_proto(objects, found->address);

	if (old) {
		old->seen = 0;
		HASH_DEL(objects->protos, old);
		old->hh.next = objects->retired;
		objects->retired = old;
	}
	if (!entry)
		return;
	entry->proto = found->proto;
	entry->bytes = malloc(found->proto.size);
	entry->proto.chunkname = malloc(chunkname_length + 1);
	if (!entry->bytes || !entry->proto.chunkname) {
		free_proto(entry);
		return;
	}
	memcpy(entry->bytes, bytes, found->proto.size);
	memcpy(entry->proto.chunkname, chunkname, chunkname_length);
	entry->proto.chunkname[chunkname_length] = '\0';
	entry->proto.bytes = entry->bytes;
	entry->proto.serial = ++objects->next_serial;
	memcpy(entry->header, found->header, sizeof(entry->header));
	clear_changing_fields(layout, entry->header);
	memcpy(entry->chunk_header, found->chunk_header, sizeof(entry->chunk_header));
	entry->chunk = found->chunk;
	HASH_ADD(hh, objects->protos, proto.address, sizeof(entry->proto.address), entry);
	if (!hash_added(&entry->hh)) {
		free_proto(entry);
		return;
	}
	objects->proto_bytes += held(entry);
	mark_seen(objects, entry);
}

/* Clear a string's GC list and colour, which may change. Its hash, length and kind do not. */
static void clear_changing_string_fields(const struct layout *layout, uint8_t *header)
{
	memset(header + layout->GChead_nextgc, 0, layout_ref_size(layout));
	header[layout->GChead_marked] = 0;
}

static void read_new_protos(struct lua_objects *objects, struct snapshot *snapshot,
			    const struct layout *layout, struct new_proto *found, size_t count)
{
	struct memory_range *ranges = calloc(count * 2, sizeof(*ranges));

	if (!ranges)
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t length = load_bytes(found[i].chunk_header, layout->GCstr_len, 4);

		ranges[2 * i] = (struct memory_range){ .address = found[i].address,
						       .length = found[i].proto.size };
		if (length > CHUNKNAME_MAX)
			length = CHUNKNAME_MAX;
		ranges[2 * i + 1] = (struct memory_range){
			.address = found[i].chunk + (uint64_t)layout->GCstr_size, .length = length
		};
	}
	snapshot_capture(snapshot, ranges, count * 2);
	for (size_t i = 0; i < count && objects->learn; i++) {
		const struct memory_range *chunk = &ranges[2 * i + 1];

		if (ranges[2 * i].status != MEMORY_OK)
			continue;
		if (chunk->length && chunk->status != MEMORY_OK)
			continue;
		add_proto(objects, layout, &found[i], ranges[2 * i].copy, chunk->length ? chunk->copy : "",
			  chunk->length);
	}
	free(ranges);
}

/* For new and changed prototypes: read the headers of their chunk names, then the rest. */
static void learn_protos(struct lua_objects *objects, struct snapshot *snapshot, const struct layout *layout,
			 struct new_proto *found, size_t count)
{
	struct memory_range *ranges = calloc(count ? count : 1, sizeof(*ranges));
	size_t kept = 0;

	if (!ranges)
		return;
	for (size_t i = 0; i < count; i++)
		ranges[i] = (struct memory_range){ .address = found[i].chunk,
						   .length = (size_t)layout->GCstr_size };
	snapshot_capture(snapshot, ranges, count);
	for (size_t i = 0; i < count; i++) {
		if (ranges[i].status != MEMORY_OK)
			continue;
		if (load_bytes(ranges[i].copy, layout->GChead_gct, 1) != GCT_STRING)
			continue;
		found[kept] = found[i];
		memcpy(found[kept].chunk_header, ranges[i].copy, (size_t)layout->GCstr_size);
		clear_changing_string_fields(layout, found[kept].chunk_header);
		kept++;
	}
	free(ranges);
	if (kept)
		read_new_protos(objects, snapshot, layout, found, kept);
}

/* Is the known prototype still the one at its address? */
static bool is_same_proto(const struct layout *layout, const struct proto_entry *entry, const uint8_t *header,
			  const uint8_t *chunk_header)
{
	uint8_t now[HEADER_MAX] = { 0 }, chunk_now[HEADER_MAX] = { 0 };

	memcpy(now, header, (size_t)layout->GCproto_size);
	clear_changing_fields(layout, now);
	memcpy(chunk_now, chunk_header, (size_t)layout->GCstr_size);
	clear_changing_string_fields(layout, chunk_now);
	return memcmp(now, entry->header, sizeof(now)) == 0 &&
	       memcmp(chunk_now, entry->chunk_header, sizeof(chunk_now)) == 0;
}

/*
 * Read the headers of the prototypes, and those of the known ones' chunk names, in
 * one read. Learn the new and changed prototypes.
 */
static void capture_protos(struct lua_objects *objects, struct snapshot *snapshot,
			   const struct layout *layout, const uint64_t *protos, size_t count)
{
	struct memory_range *ranges = calloc(count * 2, sizeof(*ranges));
	struct new_proto *found = calloc(count, sizeof(*found));
	size_t news = 0;

	if (!ranges || !found)
		goto out;
	for (size_t i = 0; i < count; i++) {
		const struct proto_entry *known = find_proto(objects, protos[i]);

		ranges[2 * i] = (struct memory_range){ .address = protos[i],
						       .length = (size_t)layout->GCproto_size };
		ranges[2 * i + 1] = (struct memory_range){ .address = known ? known->chunk : 0,
							   .length = known ? (size_t)layout->GCstr_size : 0 };
	}
	snapshot_capture(snapshot, ranges, count * 2);
	for (size_t i = 0; i < count; i++) {
		struct proto_entry *known = find_proto(objects, protos[i]);
		const struct memory_range *header = &ranges[2 * i], *chunk = &ranges[2 * i + 1];
		struct new_proto *loaded = &found[news];

		if (header->status != MEMORY_OK)
			continue;
		if (known && chunk->status == MEMORY_OK &&
		    is_same_proto(layout, known, header->copy, chunk->copy)) {
			mark_seen(objects, known);
			continue;
		}
		if (!proto_from_header(layout, header->copy, protos[i], &loaded->proto))
			continue;
		loaded->address = protos[i];
		loaded->chunk = load_bytes(header->copy, layout->GCproto_chunkname, layout_ref_size(layout));
		memcpy(loaded->header, header->copy, (size_t)layout->GCproto_size);
		news++;
	}
	if (news)
		learn_protos(objects, snapshot, layout, found, news);
out:
	free(ranges);
	free(found);
}

/*---- Functions ----*/

static struct function_entry *find_function(const struct lua_objects *objects, uint64_t address)
{
	struct function_entry *entry;

	HASH_FIND(hh, objects->functions, &address, sizeof(address), entry);
	return entry;
}

static struct function_entry *want_function(struct lua_objects *objects, uint64_t address)
{
	struct function_entry *entry = find_function(objects, address);

	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->object.address = address;
	HASH_ADD(hh, objects->functions, object.address, sizeof(entry->object.address), entry);
	if (!hash_added(&entry->hh)) {
		free(entry);
		return NULL;
	}
	return entry;
}

/* The bytes read of a function: up to and including GCfuncC.f. */
static size_t function_header_size(const struct layout *layout)
{
	return (size_t)layout->GCfuncC_f + sizeof(uint64_t);
}

static bool load_function(const struct layout *layout, const uint8_t *header, struct function_object *object)
{
	if (load_bytes(header, layout->GChead_gct, 1) != GCT_FUNCTION)
		return false;
	object->ffid = (uint8_t)load_bytes(header, layout->GCfunc_ffid, 1);
	object->pc = load_bytes(header, layout->GCfunc_pc, layout_ref_size(layout));
	object->f = object->ffid == FF_LUA ? 0 : load_bytes(header, layout->GCfuncC_f, sizeof(uint64_t));
	object->proto = NULL;
	return true;
}

/*
 * One read gets a function's header, and the headers of its last known prototype and
 * chunk name. If they are unchanged, no further read is needed.
 */
enum { RANGES_PER_FUNCTION = 3 };

static void set_ranges(const struct lua_objects *objects, const struct layout *layout,
		       const struct function_entry *entry, struct memory_range *ranges)
{
	uint64_t address = entry->object.pc - (uint64_t)layout->GCproto_size;
	const struct proto_entry *proto = entry->object.pc ? find_proto(objects, address) : NULL;

	ranges[0] = (struct memory_range){ .address = entry->object.address,
					   .length = function_header_size(layout) };
	ranges[1] = (struct memory_range){ .address = address,
					   .length = proto ? (size_t)layout->GCproto_size : 0 };
	ranges[2] = (struct memory_range){ .address = proto ? proto->chunk : 0,
					   .length = proto ? (size_t)layout->GCstr_size : 0 };
}

/* True if the function still has the prototype that was read with it, unchanged. */
static bool confirm_proto(struct lua_objects *objects, const struct layout *layout,
			  const struct function_entry *entry, const struct memory_range *ranges)
{
	uint64_t address = entry->object.pc - (uint64_t)layout->GCproto_size;
	struct proto_entry *proto = find_proto(objects, address);

	if (!proto || ranges[1].address != address || ranges[1].status != MEMORY_OK ||
	    ranges[2].status != MEMORY_OK || !is_same_proto(layout, proto, ranges[1].copy, ranges[2].copy))
		return false;
	mark_seen(objects, proto);
	return true;
}

static void capture_batch(struct lua_objects *objects, struct snapshot *snapshot, const struct layout *layout,
			  struct function_entry **entries, size_t count)
{
	struct memory_range ranges[RANGES_PER_FUNCTION * BATCH];
	uint64_t protos[BATCH];
	size_t proto_count = 0;

	for (size_t i = 0; i < count; i++)
		set_ranges(objects, layout, entries[i], &ranges[RANGES_PER_FUNCTION * i]);
	snapshot_capture(snapshot, ranges, RANGES_PER_FUNCTION * count);
	for (size_t i = 0; i < count; i++) {
		const struct memory_range *own = &ranges[RANGES_PER_FUNCTION * i];
		struct function_object *object = &entries[i]->object;

		if (own->status != MEMORY_OK || !load_function(layout, own->copy, object)) {
			entries[i]->seen = 0;
			continue;
		}
		if (object->ffid == FF_LUA && !confirm_proto(objects, layout, entries[i], own))
			protos[proto_count++] = object->pc - (uint64_t)layout->GCproto_size;
	}
	if (proto_count)
		capture_protos(objects, snapshot, layout, protos, proto_count);
	for (size_t i = 0; i < count; i++) {
		struct function_object *object = &entries[i]->object;

		if (entries[i]->seen == objects->snapshot && object->ffid == FF_LUA)
			object->proto = lua_objects_proto(objects,
							  object->pc - (uint64_t)layout->GCproto_size);
	}
}

void lua_objects_capture(struct lua_objects *objects, struct snapshot *snapshot, const struct layout *layout,
			 const uint64_t *functions, size_t count)
{
	struct function_entry *entries[BATCH];
	size_t pending = 0;

	for (size_t i = 0; i < count; i++) {
		struct function_entry *entry = want_function(objects, functions[i]);

		if (!entry) {
			objects->overfull = true;
			break;
		}
		if (entry->seen == objects->snapshot)
			continue;
		/* Mark it before the read, to skip a duplicate in this batch. */
		entry->seen = objects->snapshot;
		entries[pending++] = entry;
		if (pending == BATCH) {
			capture_batch(objects, snapshot, layout, entries, pending);
			pending = 0;
		}
	}
	if (pending)
		capture_batch(objects, snapshot, layout, entries, pending);
}

/*---- Upvalues ----*/

/* Follow the pointer at offset in each range and read next_length bytes. Unreadable ranges become empty. */
static void follow(struct snapshot *snapshot, struct memory_range *ranges, size_t count, int32_t offset,
		   unsigned size, size_t next_length)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t address = ranges[i].status == MEMORY_OK && ranges[i].length
					   ? load_bytes(ranges[i].copy, offset, size)
					   : 0;

		ranges[i] = (struct memory_range){ .address = address, .length = address ? next_length : 0 };
	}
	snapshot_capture(snapshot, ranges, count);
}

static void add_upvalue(struct lua_objects *objects, uint64_t function, unsigned index, uint64_t value)
{
	struct upvalue_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return;
	entry->key.function = function;
	entry->key.index = index;
	entry->value = value;
	HASH_ADD(hh, objects->upvalues, key, sizeof(entry->key), entry);
	if (!hash_added(&entry->hh))
		free(entry);
}

/* Follow GCfuncL.uvptr[] and GCupval.v to the values. */
static void capture_upvalues_of(struct lua_objects *objects, struct snapshot *snapshot,
				const struct layout *layout, uint64_t function)
{
	unsigned ref = layout_ref_size(layout);
	struct memory_range ranges[UPVALUES_MAX];
	uint64_t functions[UPVALUES_MAX];
	size_t found = 0, count;
	uint8_t nupvalues;

	if (!memory_u8(snapshot_memory(snapshot), function + (uint64_t)layout->GCfunc_nupvalues, &nupvalues))
		return;
	count = nupvalues < UPVALUES_MAX ? nupvalues : UPVALUES_MAX;
	for (size_t i = 0; i < count; i++)
		ranges[i] = (struct memory_range){
			.address = function + (uint64_t)layout->GCfuncL_uvptr + i * ref, .length = ref
		};
	snapshot_capture(snapshot, ranges, count);
	follow(snapshot, ranges, count, 0, ref, (size_t)layout->GCupval_size);
	follow(snapshot, ranges, count, layout->GCupval_v, ref, SLOT_SIZE);
	for (size_t i = 0; i < count; i++) {
		uint64_t value;

		if (ranges[i].status != MEMORY_OK || !ranges[i].length)
			continue;
		value = load_bytes(ranges[i].copy, 0, SLOT_SIZE);
		if (tvalue_tag(layout->gc64, value) != TAG_FUNC)
			continue;
		functions[found++] = tvalue_object(layout->gc64, value);
		add_upvalue(objects, function, (unsigned)i, functions[found - 1]);
	}
	lua_objects_capture(objects, snapshot, layout, functions, found);
}

void lua_objects_capture_upvalues(struct lua_objects *objects, struct snapshot *snapshot,
				  const struct layout *layout, const uint64_t *functions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct function_object *function = lua_objects_function(objects, functions[i]);
		const struct upvalue_key key = { .function = functions[i] };
		struct upvalue_entry *known;

		HASH_FIND(hh, objects->upvalues, &key, sizeof(key), known);
		if (function && function->ffid == FF_LUA && !known)
			capture_upvalues_of(objects, snapshot, layout, functions[i]);
	}
}

const struct function_object *lua_objects_upvalue(const struct lua_objects *objects, uint64_t function,
						  unsigned index)
{
	const struct upvalue_key key = { .function = function, .index = index };
	struct upvalue_entry *entry;

	HASH_FIND(hh, objects->upvalues, &key, sizeof(key), entry);
	return entry ? lua_objects_function(objects, entry->value) : NULL;
}

void lua_objects_capture_protos(struct lua_objects *objects, struct snapshot *snapshot,
				const struct layout *layout, const uint64_t *protos, size_t count)
{
	if (count)
		capture_protos(objects, snapshot, layout, protos, count);
}

const struct proto *lua_objects_proto(const struct lua_objects *objects, uint64_t address)
{
	const struct proto_entry *entry = find_proto(objects, address);

	return entry && entry->seen == objects->snapshot ? &entry->proto : NULL;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct proto_entry *left = *(struct proto_entry *const *)a;
	const struct proto_entry *right = *(struct proto_entry *const *)b;

	return (left->proto.address > right->proto.address) - (left->proto.address < right->proto.address);
}

const struct proto *lua_objects_proto_of_pc(struct lua_objects *objects, uint64_t pc)
{
	size_t low = 0, high = objects->by_address_count;

	if (!objects->by_address_is_sorted && high)
		qsort(objects->by_address, high, sizeof(struct proto_entry *), compare_addresses);
	objects->by_address_is_sorted = true;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (objects->by_address[middle]->proto.address <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	/* The list may still hold prototypes replaced in this snapshot; they are not marked as seen. */
	for (; low > 0; low--) {
		const struct proto_entry *entry = objects->by_address[low - 1];

		if (entry->seen == objects->snapshot)
			return proto_contains_pc(&entry->proto, pc) ? &entry->proto : NULL;
	}
	return NULL;
}

const struct function_object *lua_objects_function(const struct lua_objects *objects, uint64_t address)
{
	const struct function_entry *entry = find_function(objects, address);

	return entry && entry->seen == objects->snapshot ? &entry->object : NULL;
}

static bool load_k(const struct layout *layout, const struct proto *proto, uint64_t *ret_k)
{
	*ret_k = 0;
	return proto_load(proto, proto->address + (uint64_t)layout->GCproto_k, ret_k,
			  layout_ref_size(layout));
}

bool proto_kgc(const struct layout *layout, const struct proto *proto, uint32_t number, uint64_t *ret_object)
{
	const unsigned size = layout_ref_size(layout);
	uint64_t k;

	*ret_object = 0;
	return load_k(layout, proto, &k) &&
	       proto_load(proto, k - (uint64_t)(number + 1) * size, ret_object, size);
}

bool proto_knum(const struct layout *layout, const struct proto *proto, uint32_t number, uint64_t *ret_bits)
{
	uint64_t k;

	return load_k(layout, proto, &k) &&
	       proto_load(proto, k + (uint64_t)number * SLOT_SIZE, ret_bits, SLOT_SIZE);
}
