/* SPDX-License-Identifier: MIT */
#include "unwind/allocation/allocated.h"

#include <string.h>

#include "luajit-layouts/field.h"
#include "unwind/lua/luajit.h"

enum {
	PIECE = 4096,          /* of memory, read at once; the allocator puts new objects side by side */
	PIECES = 64,           /* kept during a walk */
	READS_MAX = 4096,      /* of a walk: 10 ms, in which there are no samples */
	RESIZE_MIN = 64 << 10, /* a smaller one does not matter */
	WHITES = 3,            /* bits of gc.currentwhite, of which one is set (lj_gc.h) */
};

/* The part of global_State that has the counters. */
struct counters_place {
	uint64_t begin; /* from g */
	size_t length;
};

enum { COUNTERS_BYTES_MAX = 512 };

static struct counters_place counters_place(const struct layout *layout)
{
	const uint64_t fields[] = { (uint64_t)layout->g_gc_total, gc_estimate_offset(layout),
				    (uint64_t)layout->g_gc_root,  (uint64_t)layout->g_strnum,
				    (uint64_t)layout->g_strmask,  (uint64_t)layout->g_gc_state };
	uint64_t begin = fields[0], end = begin;

	for (size_t i = 1; i < sizeof(fields) / sizeof(fields[0]); i++) {
		begin = fields[i] < begin ? fields[i] : begin;
		end = fields[i] > end ? fields[i] : end;
	}
	return (struct counters_place){ begin, (size_t)(end - begin) + sizeof(uint64_t) };
}

static struct allocation_counters load_counters(const struct layout *layout,
						const struct counters_place *place, const uint8_t *bytes)
{
	const unsigned ref = layout_ref_size(layout);
	const int32_t begin = (int32_t)place->begin;
	const uint64_t mask = load_bytes(bytes, layout->g_strmask - begin, sizeof(uint32_t));
	const uint32_t strings = (uint32_t)load_bytes(bytes, layout->g_strnum - begin, sizeof(uint32_t));
	const uint8_t state = (uint8_t)load_bytes(bytes, layout->g_gc_state - begin, 1);
	const bool is_full = strings > mask, has_few = strings <= mask >> 2;
	/* While it doubles, the new one is there, too (lj_str.c: lj_str_new, lj_str_resize). */
	const bool doubles = is_full && state != GCSsweepstring;
	const uint64_t string_table = (mask + 1) * ref * (doubles ? 3 : 1);

	return (struct allocation_counters){
		.total = load_bytes(bytes, layout->g_gc_total - begin, ref) - string_table,
		.string_table = string_table,
		.threshold = load_bytes(bytes, layout->g_gc_total - begin + (int32_t)ref, ref),
		.estimate = load_bytes(bytes, (int32_t)gc_estimate_offset(layout) - begin, ref),
		.root = load_bytes(bytes, layout->g_gc_root - begin, ref),
		.strings = strings,
		.has_few_strings = has_few,
		.may_resize = is_full || (has_few && state == GCSsweep), /* lj_gc.c: gc_onestep */
		.state = state,
		/* Just before it (lj_obj.h: GCState). */
		.white = (uint8_t)load_bytes(bytes, layout->g_gc_state - 1 - begin, 1),
		.has_finalizers = load_bytes(bytes, (int32_t)gc_mmudata_offset(layout) - begin, ref) != 0,
	};
}

/* A VM that has been closed may have left its memory to anything. */
static bool are_counters(const struct layout *layout, const struct counters_place *place,
			 const uint8_t *bytes)
{
	const int32_t begin = (int32_t)place->begin;
	const unsigned ref = layout_ref_size(layout);
	const uint64_t mask = load_bytes(bytes, layout->g_strmask - begin, sizeof(uint32_t));
	const uint8_t white = bytes[layout->g_gc_state - 1 - begin] & WHITES;

	return bytes[layout->g_gc_state - begin] <= GCSfinalize && white != 0 && white != WHITES &&
	       (mask & (mask + 1)) == 0 &&
	       load_bytes(bytes, layout->g_gc_total - begin, ref) >= (mask + 1) * ref;
}

/* bytes has room for so many looks. */
static void read_looks(struct memory *memory, struct allocation_look *looks,
		       uint8_t (*bytes)[COUNTERS_BYTES_MAX], size_t count)
{
	struct memory_range ranges[ALLOCATION_LOOKS_MAX];

	for (size_t i = 0; i < count; i++) {
		const struct counters_place place = counters_place(&looks[i].global->vm->layout);

		looks[i].is_read = place.length <= COUNTERS_BYTES_MAX;
		ranges[i] = (struct memory_range){ looks[i].global->g + place.begin, bytes[i],
						   looks[i].is_read ? place.length : 0, MEMORY_OK };
	}
	memory_read_ranges(memory, ranges, count);
	for (size_t i = 0; i < count; i++) {
		const struct layout *layout = &looks[i].global->vm->layout;
		const struct counters_place place = counters_place(layout);

		looks[i].is_read = looks[i].is_read && ranges[i].status == MEMORY_OK &&
				   are_counters(layout, &place, bytes[i]);
		if (looks[i].is_read)
			looks[i].counters = load_counters(layout, &place, bytes[i]);
	}
}

bool allocation_counters_read(struct memory *memory, const struct global_state *global,
			      struct allocation_counters *ret_counters)
{
	struct allocation_look look = { .global = global };
	uint8_t bytes[1][COUNTERS_BYTES_MAX];

	read_looks(memory, &look, bytes, 1);
	if (look.is_read)
		*ret_counters = look.counters;
	return look.is_read;
}

void allocation_looks_read(struct memory *memory, struct allocation_look *looks, size_t count)
{
	uint8_t bytes[ALLOCATION_LOOKS_MAX][COUNTERS_BYTES_MAX];

	read_looks(memory, looks, bytes, count);
}

bool allocation_film_read(struct memory *memory, const struct global_state *global,
			  struct allocation_counters ret_film[static ALLOCATION_FILM_LOOKS])
{
	struct allocation_look looks[ALLOCATION_FILM_LOOKS];

	for (size_t i = 0; i < ALLOCATION_FILM_LOOKS; i++)
		looks[i].global = global;
	allocation_looks_read(memory, looks, ALLOCATION_FILM_LOOKS);
	for (size_t i = 0; i < ALLOCATION_FILM_LOOKS; i++) {
		if (!looks[i].is_read)
			return false;
		ret_film[i] = looks[i].counters;
	}
	return true;
}

void allocation_counters_read_newest(struct memory *memory, const struct global_state *global,
				     struct allocation_counters *counters)
{
	const struct layout *layout = &global->vm->layout;
	uint8_t table[LAYOUT_OBJECT_MAX];
	uint32_t hmask;

	if (memory_read(memory, counters->root, table, (size_t)layout->GCtab_size) != MEMORY_OK ||
	    table[layout->GChead_gct] != GCT_TABLE)
		return;
	hmask = (uint32_t)load_bytes(table, layout->GCtab_hmask, 4);
	counters->newest_nodes = hmask ? hmask + 1 : 0;
	counters->newest_slots = (uint32_t)load_bytes(table, layout->GCtab_asize, 4);
}

bool allocated_for_strings(const struct allocation_counters *counters, uint64_t bytes)
{
	/* While it doubles, it counts three times. */
	return counters->may_resize && bytes == (counters->has_few_strings ? counters->string_table / 2
									   : counters->string_table / 3 * 2);
}

static bool sweeps(uint8_t state)
{
	return state >= GCSsweepstring;
}

/*
 * What gc.total may fall by in a sweep without gc.estimate. At its end a table of strings of which three
 * quarters are empty gets half its size: the new one is there before the old one is freed, which takes a
 * system call if it is large, and the size is told only then (lj_str.c: lj_str_resize).
 */
static int64_t freed_max(const struct allocation_counters *before, const struct allocation_counters *after)
{
	const bool may_halve = after->has_few_strings || after->string_table < before->string_table;

	return ALLOCATED_FREED_MAX + (may_halve ? (int64_t)before->string_table : 0);
}

/*
 * Has gc.estimate been set anew? In a sweep it falls, as their difference then does not, and otherwise it
 * stays. Where as much is alive at the end of each cycle, it is the same again, but the current white is
 * another one after each marking (lj_gc.c: atomic()).
 */
static bool has_marked(const struct allocation_counters *before, const struct allocation_counters *after)
{
	if (after->white != before->white)
		return true;
	if (after->estimate == before->estimate)
		return false;
	if (after->estimate > before->estimate || !sweeps(before->state))
		return true;
	if (sweeps(after->state) && after->state < before->state)
		return true;
	return (int64_t)(after->total - after->estimate - (before->total - before->estimate)) <
	       -freed_max(before, after);
}

/* The part of a cycle in which gc.estimate falls with gc.total. */
static bool is_in_sweep(uint8_t state)
{
	return state == GCSsweepstring || state == GCSsweep;
}

/* Have finalizers of the VM been seen? */
static bool has_finalized(const struct allocation_counters *counters)
{
	return counters->has_finalized || counters->has_finalizers || counters->state == GCSfinalize;
}

void allocation_counters_follow(const struct allocation_counters *earlier,
				struct allocation_counters *counters)
{
	counters->has_finalized |= has_finalized(earlier);
}

/*
 * Where finalizers were seen once, others may have been called between two looks: C objects come to wait in a
 * sweep.
 */
static bool finalizes(const struct allocation_counters *before, const struct allocation_counters *after)
{
	return has_finalized(before) || has_finalized(after);
}

/* Has the sweep that the first look met ended, so that finalizers were to be called? */
static bool has_finalizers_next(const struct allocation_counters *before,
				const struct allocation_counters *after)
{
	return is_in_sweep(before->state) && !is_in_sweep(after->state) && finalizes(before, after);
}

/*
 * Has more been freed than what a sweep frees? The VM has been closed, and another one has begun at its
 * place; or a large buffer is gone.
 */
static bool has_freed(const struct allocation_counters *before, const struct allocation_counters *after)
{
	return !sweeps(before->state) && !sweeps(after->state) && !before->may_resize && !after->may_resize &&
	       after->estimate == before->estimate &&
	       (int64_t)(after->total - before->total) < -freed_max(before, after);
}

static bool may_have_finalized(const struct allocation_counters *before,
			       const struct allocation_counters *after)
{
	return before->state == GCSfinalize || after->state == GCSfinalize ||
	       has_finalizers_next(before, after);
}

/*
 * See allocated.h. The end of a marking takes the size of userdata that waits for finalizers off gc.estimate,
 * and each finalizer some bytes (lj_gc.c: atomic(), GCFINALIZECOST); none of that goes off gc.total.
 */
static int64_t bytes_between(const struct allocation_counters *before,
			     const struct allocation_counters *after, const struct allocated *allocated)
{
	const int64_t growth = (int64_t)(after->total - before->total);

	if (allocated->is_least && (finalizes(before, after) || !allocated->has_marked))
		return growth > 0 ? growth : 0;
	if (before->state == GCSfinalize)
		return growth;
	if (!allocated->has_marked)
		return growth - (int64_t)(after->estimate - before->estimate);
	/* gc.estimate was gc.total when the marking ended. */
	return (int64_t)(after->total - after->estimate) +
	       (after->estimate > before->total ? (int64_t)(after->estimate - before->total) : 0);
}

static struct allocated allocated_from(const struct allocation_counters *before,
				       const struct allocation_counters *after, bool is_marked)
{
	/* It doubles or halves. */
	const int64_t half = (int64_t)(before->string_table / 2),
		      resize = half < RESIZE_MIN ? RESIZE_MIN : half;
	struct allocated allocated = { .heap_bytes = after->total + after->string_table,
				       .has_marked = is_marked,
				       .may_have_finalized = may_have_finalized(before, after) };

	allocated.is_least = allocated.has_marked || has_finalizers_next(before, after) ||
			     has_freed(before, after);
	allocated.bytes = bytes_between(before, after, &allocated);
	allocated.may_have_resized = (before->may_resize || after->may_resize) &&
				     (allocated.bytes <= -resize || allocated.bytes >= resize);
	allocated.knows_strings = !allocated.is_least && before->state != GCSsweepstring &&
				  after->strings >= before->strings;
	allocated.strings = allocated.knows_strings ? after->strings - before->strings : 0;
	return allocated;
}

struct allocated allocated_between(const struct allocation_counters *before,
				   const struct allocation_counters *after)
{
	return allocated_from(before, after, has_marked(before, after));
}

struct allocated allocated_in_span(const struct allocation_counters *before,
				   const struct allocation_counters *after)
{
	return allocated_from(before, after, before->white != after->white);
}

uint64_t allocated_in_film(const struct allocation_counters *before, const struct allocation_counters *after)
{
	/* A sweep frees meanwhile. */
	if (sweeps(before->state) || sweeps(after->state) || after->estimate != before->estimate ||
	    after->total <= before->total || after->strings < before->strings)
		return 0;
	return after->total - before->total;
}

/* Add the new objects between two looks, and take their bytes off. False if they are unknown. */
static bool take_objects_between(const struct allocation_counters *before,
				 const struct allocation_counters *after, const struct listed_object *objects,
				 size_t count, struct allocated_besides *besides)
{
	size_t i = 0, first;
	uint64_t bytes = 0;

	while (i < count && objects[i].address != after->root)
		i++;
	for (first = i; i < count && objects[i].address != before->root; i++) {
		if (!objects[i].bytes)
			return false;
		bytes += objects[i].bytes;
		besides->part_bytes += listed_part_bytes(&objects[i]);
	}
	besides->objects = i - first;
	if (bytes > besides->bytes)
		return false;
	besides->bytes -= bytes;
	return i < count;
}

bool allocated_besides_objects(const struct allocation_counters *before,
			       const struct allocation_counters *after, const struct listed_object *objects,
			       size_t count, struct allocated_besides *ret_besides)
{
	struct allocated_besides besides = { .bytes = allocated_in_film(before, after),
					     .strings = after->strings - before->strings };

	if (besides.bytes == 0)
		return false;
	if (after->root != before->root && !take_objects_between(before, after, objects, count, &besides))
		return false;
	*ret_besides = besides;
	return true;
}

/*---- The list of objects ----*/

struct walk {
	struct memory *memory;
	const struct layout *layout;
	size_t reads;
	uint64_t places[PIECES]; /* of the pieces, in units of PIECE; 0: none */
	uint8_t pieces[PIECES][PIECE];
};

/* New objects lie side by side; old ones, of a list that does not lead to the last one, may lie anywhere. */
static bool walk_read_memory(struct walk *walk, uint64_t address, void *copy, size_t length)
{
	if (walk->reads == READS_MAX)
		return false;
	walk->reads++;
	return memory_read(walk->memory, address, copy, length) == MEMORY_OK;
}

static bool walk_read(struct walk *walk, uint64_t address, void *copy, size_t length)
{
	const uint64_t place = address / PIECE;
	const size_t slot = place % PIECES;

	if (place == 0 || (address + length - 1) / PIECE != place)
		return place && walk_read_memory(walk, address, copy, length);
	if (walk->places[slot] != place) {
		walk->places[slot] = 0;
		if (!walk_read_memory(walk, place * PIECE, walk->pieces[slot], PIECE))
			return false;
		walk->places[slot] = place;
	}
	memcpy(copy, walk->pieces[slot] + address % PIECE, length);
	return true;
}

/* A field of the object at address; 0 if it cannot be read. */
static uint64_t walk_field(struct walk *walk, uint64_t address, int32_t offset, unsigned int size)
{
	uint64_t value = 0;

	walk_read(walk, address + (uint64_t)offset, &value, size);
	return value;
}

static void read_table(struct walk *walk, uint64_t address, struct listed_object *object)
{
	const struct layout *layout = walk->layout;
	const struct table_sizes sizes = table_sizes(
		layout, walk_field(walk, address, layout->GCtab_asize, 4),
		walk_field(walk, address, layout->GCtab_hmask, 4),
		(uint8_t)walk_field(walk, address, layout->GCtab_colo, 1));

	object->bytes = sizes.table;
	object->hash_bytes = sizes.hash;
	object->array_bytes = sizes.array;
}

static uint64_t function_bytes(struct walk *walk, uint64_t object)
{
	const struct layout *layout = walk->layout;

	return function_size(layout, walk_field(walk, object, layout->GCfunc_ffid, 1),
			     walk_field(walk, object, layout->GCfunc_nupvalues, 1));
}

/* False if it is no object that the lists can have. */
static bool read_object(struct walk *walk, uint64_t address, struct listed_object *ret_object)
{
	const struct layout *layout = walk->layout;
	struct listed_object object = { .address = address };

	switch (walk_field(walk, address, layout->GChead_gct, 1)) {
	case GCT_TABLE:
		object.kind = ALLOCATION_TABLE;
		read_table(walk, address, &object);
		break;
	case GCT_FUNCTION:
		object.kind = ALLOCATION_FUNCTION;
		object.bytes = function_bytes(walk, address);
		break;
	case GCT_UPVALUE:
		object.kind = ALLOCATION_UPVALUE;
		object.bytes = (uint64_t)layout->GCupval_size;
		break;
	case GCT_THREAD:
		object.kind = ALLOCATION_THREAD;
		object.bytes = (uint64_t)layout->L_size;
		object.stack_bytes = walk_field(walk, address, layout->L_stacksize, 4) * SLOT_SIZE;
		break;
	case GCT_PROTO:
		object.kind = ALLOCATION_PROTO;
		object.bytes = walk_field(walk, address, layout->GCproto_sizept, 4);
		break;
	case GCT_CDATA:
		object.kind = ALLOCATION_CDATA;
		object.ctype = (uint32_t)walk_field(walk, address, layout->GChead_gct + 1, sizeof(uint16_t));
		break;
	case GCT_TRACE: object.kind = ALLOCATION_TRACE; break;
	case GCT_USERDATA:
		object.kind = ALLOCATION_USERDATA;
		object.bytes = (uint64_t)layout->GCudata_size +
			       walk_field(walk, address, layout->GCudata_len, 4);
		break;
	default: return false;
	}
	*ret_object = object;
	return true;
}

/* Add the objects of one of both lists. */
static bool add_list(struct memory *memory, const struct global_state *global, uint64_t first, uint64_t last,
		     bool is_userdata, struct listed_object *objects, size_t *count)
{
	struct walk walk; /* its pieces are many kilobytes: only their places say that there are none */
	uint64_t address = first;

	walk.memory = memory;
	walk.layout = &global->vm->layout;
	walk.reads = 0;
	memset(walk.places, 0, sizeof(walk.places));
	while (*count < LISTED_OBJECTS_MAX && walk.reads < READS_MAX && address != last) {
		struct listed_object *object = &objects[*count];

		if (!address || !read_object(&walk, address, object) ||
		    (object->kind == ALLOCATION_USERDATA) != is_userdata)
			return false;
		++*count;
		address = walk_field(&walk, address, walk.layout->GChead_nextgc,
				     layout_ref_size(walk.layout));
	}
	return address == last && walk.reads < READS_MAX;
}

bool allocated_objects(struct memory *memory, const struct global_state *global, uint64_t first,
		       uint64_t last, struct listed_object *objects, size_t *ret_count)
{
	*ret_count = 0;
	return add_list(memory, global, first, last, false, objects, ret_count);
}

static bool read_reference(struct memory *copy, struct memory *memory, const struct layout *layout,
			   uint64_t address, uint64_t *ret)
{
	return field_reference(copy, layout, address, ret) || field_reference(memory, layout, address, ret);
}

uint64_t allocated_newest_userdata(struct memory *copy, struct memory *memory,
				   const struct global_state *global)
{
	const struct layout *layout = &global->vm->layout;
	uint64_t thread, userdata;

	return read_reference(copy, memory, layout, global->g + (uint64_t)layout->g_mainthref, &thread) &&
			       read_reference(copy, memory, layout, thread + (uint64_t)layout->GChead_nextgc,
					      &userdata)
		       ? userdata
		       : 0;
}

bool allocated_userdata(struct memory *memory, const struct global_state *global, uint64_t first,
			uint64_t last, struct listed_object *objects, size_t *count)
{
	return add_list(memory, global, first, last, true, objects, count);
}
