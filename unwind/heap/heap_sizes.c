/* SPDX-License-Identifier: MIT */
/*
 * What the allocator was asked for each object (lj_str.c, lj_tab.c, lj_func.c, lj_cdata.c, lj_trace.c, ...).
 */
#include "unwind/heap/heap_reading.h"

enum {
	WHITES = 3,             /* lj_gc.h */
	LJ_GC_FIXED = 0x20,     /* ditto: never collected */
	LJ_GC_CDATA_FIN = 0x10, /* marked of a cdata */
	LJ_GC_CDATA_VAR = 0x80, /* ditto; lj_obj.h */
	STRING_ID_BYTES = 8,    /* GCstr.sid and .hash come between header and len */
	STRING_PADDING = 4,
	IR_INSTRUCTION = 8,
	SNAP_ENTRY = 4,
	POINTER = 8,
	UDTYPE_BUFFER = 3,
	CTYPE_KIND_SHIFT = 28, /* lj_ctype.h */
	CT_ENUM = 5,           /* CT_HASSIZE */
	CT_ATTRIB = 8,
	CTYPE_ID_MASK = 0xffff,
	ATTRIBUTES_MAX = 64, /* that one type has */
};

/* GCcdataVar, before the object (lj_obj.h). */
struct cdata_var {
	uint16_t offset, extra;
	uint32_t len;
};

static bool size_of_string(struct heap_reading *reading, const uint8_t *object, struct heap_node *node)
{
	const struct layout *layout = reading->layout;
	uint64_t length = heap_field(object, layout->GCstr_len, 4);

	/* With GCstr.sid came hash functions that read whole words behind the end. */
	node->bytes = layout->GCstr_len - (layout->GChead_gct + 3) >= STRING_ID_BYTES
			      ? (uint64_t)layout->GCstr_size +
					((length + STRING_PADDING) & ~(uint64_t)(STRING_PADDING - 1))
			      : (uint64_t)layout->GCstr_size + length + 1;
	return true;
}

/* How many of the tagged values, stride bytes apart, are not nil; false if they cannot be read. */
static bool count_used(struct heap_reading *reading, uint64_t address, uint64_t count, uint64_t stride,
		       uint64_t *used)
{
	const uint8_t *values = heap_copy_view(reading->copy, address, (size_t)(count * stride));

	if (!values)
		return false;
	for (uint64_t i = 0; i < count; i++)
		*used += tvalue_tag(reading->gc64, load_bytes(values + i * stride, 0, SLOT_SIZE)) != -1;
	return true;
}

static bool size_of_table(struct heap_reading *reading, const uint8_t *object, struct heap_node *node)
{
	const struct layout *layout = reading->layout;
	const uint64_t asize = heap_field(object, layout->GCtab_asize, 4),
		       hmask = heap_field(object, layout->GCtab_hmask, 4);
	const struct table_sizes sizes = table_sizes(layout, asize, hmask,
						     (uint8_t)heap_field(object, layout->GCtab_colo, 1));
	const uint64_t nodes = hmask ? hmask + 1 : 0;
	uint64_t used = 0;
	bool readable = true;

	node->bytes = sizes.table + sizes.hash + sizes.array;
	if (asize)
		readable &= count_used(reading, heap_ref(reading, object, layout->GCtab_array), asize,
				       SLOT_SIZE, &used);
	if (nodes)
		readable &= count_used(
			reading, heap_ref(reading, object, layout->GCtab_node) + (uint64_t)layout->Node_val,
			nodes, (uint64_t)layout->Node_size, &used);
	node->slots = asize + nodes < UINT32_MAX ? (uint32_t)(asize + nodes) : UINT32_MAX;
	node->used = (uint32_t)used;
	if (!readable)
		reading->account->uncertain.unread_bytes += asize * SLOT_SIZE +
							    nodes * (uint64_t)layout->Node_size;
	return true;
}

static bool size_of_function(struct heap_reading *reading, const uint8_t *object, struct heap_node *node)
{
	const struct layout *layout = reading->layout;

	node->bytes = function_size(layout, heap_field(object, layout->GCfunc_ffid, 1),
				    heap_field(object, layout->GCfunc_nupvalues, 1));
	return true;
}

static bool size_of_thread(struct heap_reading *reading, uint64_t address, const uint8_t *object,
			   struct heap_node *node)
{
	const struct layout *layout = reading->layout;

	/* The main thread's lua_State is part of GG_State. */
	node->bytes = heap_field(object, layout->L_stacksize, 4) * SLOT_SIZE;
	if (address != reading->mainthread)
		node->bytes += (uint64_t)layout->L_size;
	return true;
}

/* A CType without its attributes, or NULL. */
static const uint8_t *raw_ctype(struct heap_reading *reading, uint32_t id)
{
	const uint64_t size = reading->gc64 ? 3 * POINTER : 2 * POINTER;

	for (unsigned int i = 0; i < ATTRIBUTES_MAX && id < reading->parts.ctype_top; i++) {
		const uint8_t *ctype = heap_copy_view(reading->copy, reading->parts.ctypes + id * size,
						      (size_t)size);
		uint32_t info;

		if (!ctype)
			return NULL;
		info = (uint32_t)heap_field(ctype, 0, 4);
		if (info >> CTYPE_KIND_SHIFT != CT_ATTRIB)
			return ctype;
		id = info & CTYPE_ID_MASK;
	}
	return NULL;
}

static bool size_of_cdata(struct heap_reading *reading, uint64_t address, const uint8_t *object,
			  struct heap_node *node)
{
	/* GCcdata is the header and ctypeid. */
	const int32_t ctypeid = reading->layout->GChead_gct + 1;
	const uint64_t header = reading->gc64 ? 2 * POINTER : POINTER;
	const uint8_t marked = (uint8_t)heap_field(object, reading->layout->GChead_marked, 1);
	const uint8_t *ctype = raw_ctype(reading, (uint32_t)heap_field(object, ctypeid, 2));

	node->flags |= marked & LJ_GC_CDATA_FIN ? HEAP_FINALIZER : 0;
	if (marked & LJ_GC_CDATA_VAR) {
		const uint8_t *bytes = heap_copy_view(reading->copy, address - sizeof(struct cdata_var),
						      sizeof(struct cdata_var));
		struct cdata_var var;

		if (!bytes)
			return false;
		memcpy(&var, bytes, sizeof(var));
		node->bytes = (uint64_t)var.len + var.extra;
		return true;
	}
	if (!ctype)
		reading->account->uncertain.unsized_objects++;
	node->bytes = header + (ctype && heap_field(ctype, 0, 4) >> CTYPE_KIND_SHIFT <= CT_ENUM
					? heap_field(ctype, 4, 4)
					: POINTER);
	return true;
}

/*
 * A string.buffer's SBufExt: w, e, b, L with flags, cowref, r (lj_buf.h), of which L and cowref are GCRefs.
 * Its buffer is its own unless it is shared. What lies before r has been read and is free, too.
 */
static void add_buffer(struct heap_reading *reading, uint64_t payload, struct heap_node *node)
{
	enum { W, E, B, WORDS, COW_OR_BORROWED = 6 };
	const int32_t at_read = WORDS * POINTER + 2 * (int32_t)reading->ref;
	const uint8_t *words = heap_copy_view(reading->copy, payload, (size_t)at_read + POINTER);
	uint64_t begin, end, written, read;

	if (!words)
		return;
	begin = heap_field(words, B * POINTER, POINTER);
	end = heap_field(words, E * POINTER, POINTER);
	written = heap_field(words, W * POINTER, POINTER);
	read = heap_field(words, at_read, POINTER);
	if (heap_field(words, WORDS * POINTER, 1) & COW_OR_BORROWED || end < begin ||
	    end - begin > UINT32_MAX)
		return;
	node->bytes += end - begin;
	node->slots = (uint32_t)(end - begin);
	node->used = begin <= read && read <= written && written <= end ? (uint32_t)(written - read) : 0;
}

static bool size_of_userdata(struct heap_reading *reading, uint64_t address, const uint8_t *object,
			     struct heap_node *node)
{
	const struct layout *layout = reading->layout;

	node->bytes = (uint64_t)layout->GCudata_size + heap_field(object, layout->GCudata_len, 4);
	/* GCudata.udtype comes next to the header. */
	if (heap_field(object, layout->GChead_gct + 1, 1) == UDTYPE_BUFFER)
		add_buffer(reading, address + (uint64_t)layout->GCudata_size, node);
	return true;
}

static bool size_of_trace(struct heap_reading *reading, const uint8_t *object, struct heap_node *node)
{
	const struct layout *layout = reading->layout;
	const bool wide = layout->GCtrace_nsnapmap >= 0 && layout->SnapShot_mapofs >= 0 &&
			  layout->SnapShot_ref == 4;

	if (!layout->has_jit || layout->GCtrace_size <= 0)
		return false;
	node->bytes = ((uint64_t)layout->GCtrace_size + POINTER - 1) / POINTER * POINTER +
		      (heap_field(object, layout->GCtrace_nins, 4) -
		       heap_field(object, layout->GCtrace_nk, 4)) *
			      IR_INSTRUCTION +
		      heap_field(object, layout->GCtrace_nsnap, 2) * (uint64_t)layout->SnapShot_size +
		      heap_field(object, layout->GCtrace_nsnapmap, wide ? 4 : 2) * SNAP_ENTRY;
	return node->bytes <= UINT32_MAX;
}

static const struct {
	enum heap_kind kind;
	bool known;
} kinds[] = {
	[GCT_STRING] = { HEAP_KIND_STRING, true },     [GCT_UPVALUE] = { HEAP_KIND_UPVALUE, true },
	[GCT_THREAD] = { HEAP_KIND_THREAD, true },     [GCT_PROTO] = { HEAP_KIND_PROTO, true },
	[GCT_FUNCTION] = { HEAP_KIND_FUNCTION, true }, [GCT_TRACE] = { HEAP_KIND_TRACE, true },
	[GCT_CDATA] = { HEAP_KIND_CDATA, true },       [GCT_TABLE] = { HEAP_KIND_TABLE, true },
	[GCT_USERDATA] = { HEAP_KIND_USERDATA, true },
};

/* The object's own bytes, without what follows or belongs to it. */
static int32_t header_bytes(const struct heap_reading *reading, uint8_t gct)
{
	const struct layout *layout = reading->layout;

	switch (gct) {
	case GCT_STRING: return layout->GCstr_size;
	case GCT_UPVALUE: return layout->GCupval_size;
	case GCT_THREAD: return layout->L_size;
	case GCT_PROTO: return layout->GCproto_size;
	case GCT_FUNCTION: return layout->GCfuncL_uvptr;
	case GCT_TRACE: return layout->GCtrace_size;
	case GCT_CDATA: return reading->gc64 ? 2 * POINTER : POINTER;
	case GCT_TABLE: return layout->GCtab_size;
	default: return layout->GCudata_size;
	}
}

static bool size_of(struct heap_reading *reading, uint64_t address, const uint8_t *object,
		    struct heap_node *node)
{
	switch ((enum heap_kind)node->kind) {
	case HEAP_KIND_STRING: return size_of_string(reading, object, node);
	case HEAP_KIND_UPVALUE: node->bytes = (uint64_t)reading->layout->GCupval_size; return true;
	case HEAP_KIND_THREAD: return size_of_thread(reading, address, object, node);
	case HEAP_KIND_PROTO:
		node->bytes = heap_field(object, reading->layout->GCproto_sizept, 4);
		return true;
	case HEAP_KIND_FUNCTION: return size_of_function(reading, object, node);
	case HEAP_KIND_TRACE: return size_of_trace(reading, object, node);
	case HEAP_KIND_CDATA: return size_of_cdata(reading, address, object, node);
	case HEAP_KIND_TABLE: return size_of_table(reading, object, node);
	case HEAP_KIND_USERDATA: return size_of_userdata(reading, address, object, node);
	case HEAP_KIND_ROOT:
	case HEAP_KIND_VM:
	case HEAP_KIND_COUNT: break;
	}
	return false;
}

bool heap_node_read(struct heap_reading *reading, uint64_t address, struct heap_node *ret_node)
{
	struct heap_uncertain *uncertain = &reading->account->uncertain;
	const struct layout *layout = reading->layout;
	const uint8_t *object = heap_object(reading, address, layout->GChead_gct + 1);
	struct heap_node node = { .address = address };
	uint8_t gct, marked;

	if (!object) {
		uncertain->unread_objects++;
		return false;
	}
	gct = object[layout->GChead_gct];
	marked = object[layout->GChead_marked];
	if (gct >= sizeof(kinds) / sizeof(kinds[0]) || !kinds[gct].known) {
		uncertain->unknown_objects++;
		return false;
	}
	node.kind = (uint8_t)kinds[gct].kind;
	/*
	 * It has the previous cycle's white (lj_gc.h: isdead). The sweep keeps what is fixed (lj_gc.c:
	 * gc_sweep).
	 */
	if (marked & (reading->gc.currentwhite ^ WHITES) & WHITES && !(marked & LJ_GC_FIXED))
		node.flags |= HEAP_DEAD;
	object = heap_object(reading, address, header_bytes(reading, gct));
	if (!object || !size_of(reading, address, object, &node)) {
		uncertain->unread_objects++;
		return false;
	}
	*ret_node = node;
	return true;
}
