/* SPDX-License-Identifier: MIT */
#include "unwind/heap/vm_parts.h"

#include <stddef.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "unwind/lua/luajit.h"

enum {
	GC_REFERENCES = 6, /* gc.root, sweep, gray, grayagain, weak, mmudata */
	POINTER = 8,
	PARTS_BYTES_MAX_SHIFT = 40, /* no part is larger than a terabyte */
	CONSTANT_BLOCKS_MAX = 1 << 20,
	ASM_FUNCTIONS_MAX = 128, /* GG_NUM_ASMFF */
};

/* End of jit_State's fields before J.trace, without what has come between since 2.1 (lj_jit.h). */
struct jit_buffers {
	uint64_t irbuf;
	uint32_t irtoplim, irbotlim, loopref, sizesnap;
	uint64_t snapbuf, snapmapbuf;
	uint32_t sizesnapmap, postproc;
};

/* J.retryrec and what aligns J.trace behind it. */
struct jit_retry {
	uint64_t retryrec;
};

/* From J.state on, up to J.k64 in 2.0. */
struct jit_unroll {
	uint32_t state, instunroll, loopunroll, tailcalled, framedepth, retdepth, k64;
};

enum { K64_CONSTANTS = 16 }; /* LJ_MIN_K64SZ */

/* K64Array of 2.0. */
struct k64_array {
	uint32_t next, numk;
	uint64_t k[K64_CONSTANTS];
};

/* CTState and CCallback (lj_ctype.h). CTState.finalizer is gone since LuaJIT f5affaa6 of 2024. */
struct ctype_state_begin {
	uint64_t tab;
	uint32_t top, sizetab;
	uint64_t L, g;
};

enum { CTHASH_SIZE = 128, CTYPES_MAX = 65536 };

/*
 * CCALL_MAX_GPR + CCALL_MAX_FPR: LuaJIT's, and Debian's, whose patches for PowerPC raise it on every machine.
 */
static const unsigned int callback_registers[] = { 8 + 8, 8 + 14 };

/* CType, up to its name. */
struct ctype_begin {
	uint32_t info, size;
	uint16_t sib, next;
};

struct callback_end {
	uint64_t stack, mcode, cbid;
	uint32_t sizeid, topid, slot, padding;
};

struct ctype_hash {
	uint16_t anchors[CTHASH_SIZE];
};

/* SBuf of 2.0; later ones are three pointers and L. */
struct buffer_v20 {
	uint64_t buf;
	uint32_t n, sz;
};

static bool load(struct heap_copy *copy, uint64_t address, unsigned size, uint64_t *ret_value)
{
	const uint8_t *bytes = heap_copy_view(copy, address, size);

	if (!bytes)
		return false;
	*ret_value = load_bytes(bytes, 0, size);
	return true;
}

static struct heap_figure figure(struct heap_copy *copy, uint64_t address, unsigned size)
{
	struct heap_figure found = { .known = false };

	found.known = load(copy, address, size, &found.value);
	return found;
}

/*---- The collector ----*/

/*
 * Next to gc.estimate: stepmul and pause behind it; in 2.0 stepmul comes before debt, which is before
 * estimate.
 */
static void read_pace(struct heap_copy *copy, const struct layout *layout, uint64_t g,
		      struct gc_fields *fields)
{
	const unsigned ref = layout_ref_size(layout);
	const uint64_t estimate = g + gc_estimate_offset(layout), behind = estimate + ref;
	const bool is_first = layout->bytecode == BYTECODE_V20;

	fields->estimate = figure(copy, estimate, ref);
	fields->stepmul = figure(copy, is_first ? estimate - ref - sizeof(uint32_t) : behind,
				 sizeof(uint32_t));
	fields->pause = figure(copy, is_first ? behind : behind + sizeof(uint32_t), sizeof(uint32_t));
}

bool gc_fields_read(struct heap_copy *copy, const struct layout *layout, uint64_t g,
		    struct gc_fields *ret_fields)
{
	const unsigned ref = layout_ref_size(layout);
	struct gc_fields fields = { 0 };
	uint64_t state, white;

	/* gc.threshold comes next to gc.total, gc.currentwhite just before gc.state. */
	if (!load(copy, g + (uint64_t)layout->g_gc_total, ref, &fields.total) ||
	    !load(copy, g + (uint64_t)layout->g_gc_state, 1, &state) ||
	    !load(copy, g + (uint64_t)layout->g_gc_state - 1, 1, &white) ||
	    !load(copy, g + (uint64_t)layout->g_gc_root, ref, &fields.root) ||
	    !load(copy, g + gc_mmudata_offset(layout), ref, &fields.mmudata))
		return false;
	fields.state = (uint8_t)state;
	fields.currentwhite = (uint8_t)white;
	fields.threshold = figure(copy, g + (uint64_t)layout->g_gc_total + ref, ref);
	read_pace(copy, layout, g, &fields);
	*ret_fields = fields;
	return true;
}

/*---- Parts ----*/

struct reading {
	struct heap_copy *copy;
	const struct vm_code *vm;
	const struct layout *layout;
	uint64_t g;
	struct vm_parts *parts;
};

static const char *const snapshots_name = "buffer of snapshots";

static void add_part(struct vm_parts *parts, const char *name, uint64_t bytes, uint64_t slots, uint64_t used)
{
	if (bytes == 0 || bytes >> PARTS_BYTES_MAX_SHIFT || parts->count == VM_PARTS_MAX)
		return;
	parts->parts[parts->count++] = (struct vm_part){
		.name = name, .bytes = bytes, .slots = (uint32_t)slots, .used = (uint32_t)used
	};
}

static void add(struct reading *reading, const char *name, uint64_t bytes, uint64_t slots, uint64_t used)
{
	add_part(reading->parts, name, bytes, slots, used);
}

/* sizeof(SnapShot), before January 2019 and since (lj_jit.h). */
static const uint64_t snapshot_sizes[] = { 8, 12 };

void vm_parts_add_snapshots(struct vm_parts *parts, uint64_t lacking)
{
	for (size_t i = 0; i < sizeof(snapshot_sizes) / sizeof(snapshot_sizes[0]); i++)
		if (parts->snapshots && lacking == parts->snapshots * snapshot_sizes[i])
			add_part(parts, snapshots_name, lacking, parts->snapshots, 0);
}

static bool load_g(const struct reading *reading, int32_t offset, unsigned size, uint64_t *ret_value)
{
	return load(reading->copy, reading->g + (uint64_t)offset, size, ret_value);
}

/*
 * GG_State ends with bcff, the instructions BC__MAX, BC__MAX + 1, ... of fast functions, and
 * the dispatch table before it has an entry for each opcode, for each of bcff, and again for
 * each opcode below FUNCF (lj_dispatch.h: GG_LEN_DISP).
 */
static uint64_t global_state_bytes(const struct reading *reading)
{
	const uint32_t opcodes = (uint32_t)bytecode_count(reading->layout),
		       second = (uint32_t)bytecode_number(reading->layout, BC_FUNCF);
	const uint64_t dispatch = reading->g + (uint64_t)reading->layout->GG_dispatch;

	for (uint32_t functions = 1; functions < ASM_FUNCTIONS_MAX; functions++) {
		uint64_t table = (uint64_t)(opcodes + functions + second) * POINTER, bytes;
		const uint8_t *bcff = heap_copy_view(reading->copy, dispatch + table,
						     functions * sizeof(uint32_t));
		uint32_t i = 0;

		while (bcff && i < functions &&
		       load_bytes(bcff, (int32_t)(i * sizeof(uint32_t)), sizeof(uint32_t)) == opcodes + i)
			i++;
		if (i < functions)
			continue;
		bytes = (uint64_t)reading->layout->L_size + (uint64_t)reading->layout->GG_dispatch + table +
			functions * sizeof(uint32_t);
		return (bytes + POINTER - 1) & ~(uint64_t)(POINTER - 1);
	}
	return 0;
}

static void add_string_table(struct reading *reading)
{
	const unsigned ref = layout_ref_size(reading->layout);
	uint64_t mask, used;

	if (load_g(reading, reading->layout->g_strmask, sizeof(uint32_t), &mask) &&
	    load_g(reading, reading->layout->g_strnum, sizeof(uint32_t), &used))
		add(reading, "string table", (mask + 1) * ref, mask + 1, used < mask ? used : mask + 1);
}

/*
 * tmpbuf.L comes behind three pointers, or references. Pointers it has where mainthref, which
 * comes before tmpbuf since June 2020, leaves room for them.
 */
static void add_buffer(struct reading *reading)
{
	const struct layout *layout = reading->layout;
	const unsigned ref = layout_ref_size(layout);
	unsigned pointer = ref;
	uint64_t begin, end, size;

	if (layout->bytecode == BYTECODE_V20) {
		/* It follows the collector's fields: the references, stepmul, debt, estimate and pause. */
		uint64_t at = (uint64_t)layout->g_gc_root + GC_REFERENCES * ref + 4 * sizeof(uint32_t);

		if (load_g(reading, (int32_t)(at + offsetof(struct buffer_v20, sz)), sizeof(uint32_t), &size))
			add(reading, "buffer of strings", size, size, 0);
		return;
	}
	if (layout->g_tmpbuf_L < 0)
		return;
	if (layout->g_tmpbuf_L - layout->g_mainthref == (int32_t)ref + 3 * POINTER)
		pointer = POINTER;
	if (load_g(reading, layout->g_tmpbuf_L - (int32_t)pointer, pointer, &begin) &&
	    load_g(reading, layout->g_tmpbuf_L - 2 * (int32_t)pointer, pointer, &end) && end > begin)
		add(reading, "buffer of strings", end - begin, end - begin, 0);
}

/*
 * gc.lightudseg, since September 2020: the last of the collector's fields, before vmstate or,
 * later, strempty, which hookmask follows. gc.lightudnum comes two bytes behind gc.state.
 */
static void add_light_userdata(struct reading *reading)
{
	const struct layout *layout = reading->layout;
	const unsigned ref = layout_ref_size(layout);
	int32_t end = layout->g_gc_root + (GC_REFERENCES + 2) * (int32_t)ref + 2 * (int32_t)sizeof(uint32_t);
	int32_t next = layout->g_strhash == 0 ? layout->g_vmstate
					      : layout->g_hookmask - 1 - layout->GCstr_size;
	uint64_t segments, last, room = 2;

	if (layout->bytecode == BYTECODE_V20 || next - end < (int32_t)ref ||
	    !load_g(reading, end, ref, &segments) || segments == 0 ||
	    !load_g(reading, layout->g_gc_state + 2, 1, &last))
		return;
	while (room <= last)
		room *= 2;
	add(reading, "segments of light userdata", room * sizeof(uint32_t), room, last + 1);
}

/*---- The trace compiler ----*/

/* Blocks of constants of 2.0, which are linked. */
static void add_constants(struct reading *reading, uint64_t J)
{
	uint64_t at = J + (uint64_t)reading->layout->J_state + offsetof(struct jit_unroll, k64), bytes = 0;

	for (unsigned int i = 0;
	     i < CONSTANT_BLOCKS_MAX && load(reading->copy, at, sizeof(uint32_t), &at) && at; i++)
		bytes += sizeof(struct k64_array);
	add(reading, "64-bit constants", bytes, 0, 0);
}

static void add_trace_compiler(struct reading *reading)
{
	const struct layout *layout = reading->layout;
	const uint64_t J = reading->g + (uint64_t)layout->GG_J;
	struct jit_buffers buffers;
	const uint8_t *bytes;
	uint64_t traces;
	int32_t at;

	if (!layout->has_jit)
		return;
	at = layout->J_trace - (int32_t)sizeof(struct jit_buffers);
	if (layout->bytecode == BYTECODE_V20)
		add_constants(reading, J);
	else
		at -= (int32_t)sizeof(struct jit_retry);
	bytes = heap_copy_view(reading->copy, J + (uint64_t)at, sizeof(buffers));
	if (bytes) {
		memcpy(&buffers, bytes, sizeof(buffers));
		if (buffers.irbuf && buffers.irtoplim > buffers.irbotlim)
			add(reading, "buffer of IR",
			    (uint64_t)(buffers.irtoplim - buffers.irbotlim) * POINTER,
			    buffers.irtoplim - buffers.irbotlim, 0);
		if (layout->SnapShot_size > 0)
			add(reading, snapshots_name,
			    (uint64_t)buffers.sizesnap * (uint64_t)layout->SnapShot_size, buffers.sizesnap,
			    0);
		else
			reading->parts->snapshots = buffers.sizesnap;
		add(reading, "buffer of snapshot maps", (uint64_t)buffers.sizesnapmap * sizeof(uint32_t),
		    buffers.sizesnapmap, 0);
	}
	if (load(reading->copy, J + (uint64_t)layout->J_sizetrace, sizeof(uint32_t), &traces))
		add(reading, "table of traces", traces * layout_ref_size(layout), traces, 0);
}

/*---- C types ----*/

static bool is_table(const struct reading *reading, uint64_t address)
{
	uint64_t gct;

	return address % SLOT_SIZE == 0 &&
	       load(reading->copy, address + (uint64_t)reading->layout->GChead_gct, 1, &gct) &&
	       gct == GCT_TABLE;
}

/* How many C types the anchors at an address lead to; 0 if they are no anchors. */
static uint32_t count_hashed(struct reading *reading, uint64_t hash, uint64_t ctypes, uint32_t top)
{
	const uint64_t size = reading->layout->gc64 ? 3 * POINTER : 2 * POINTER;
	const uint8_t *anchors = heap_copy_view(reading->copy, hash, sizeof(struct ctype_hash));
	const uint8_t *types = heap_copy_view(reading->copy, ctypes, (size_t)(top * size));
	uint32_t count = 0;

	for (size_t i = 0; anchors && types && i < CTHASH_SIZE; i++) {
		uint32_t id = (uint32_t)load_bytes(anchors, (int32_t)(i * sizeof(uint16_t)),
						   sizeof(uint16_t));

		for (; id && count <= top; count++) {
			if (id >= top)
				return 0;
			id = (uint32_t)load_bytes(types + id * size, offsetof(struct ctype_begin, next),
						  sizeof(uint16_t));
		}
	}
	return count <= top ? count : 0;
}

/* Where CTState.cb ends: the anchors behind it lead to more C types than elsewhere. */
static uint64_t find_callback_end(struct reading *reading, uint64_t cb, const struct ctype_state_begin *begin)
{
	uint32_t most = 0;
	uint64_t found = 0;

	for (size_t i = 0; i < sizeof(callback_registers) / sizeof(callback_registers[0]); i++) {
		uint64_t end = cb + callback_registers[i] * POINTER;
		uint32_t count = count_hashed(reading, end + sizeof(struct callback_end), begin->tab,
					      begin->top);

		if (count <= most)
			continue;
		most = count;
		found = end;
	}
	return found;
}

static void add_ctypes(struct reading *reading)
{
	const struct layout *layout = reading->layout;
	const uint64_t ctype = layout->gc64 ? 3 * POINTER : 2 * POINTER; /* sizeof(CType) */
	struct vm_parts *parts = reading->parts;
	uint64_t cts, first, second, at;
	struct ctype_state_begin begin;
	struct callback_end callback;
	const uint8_t *bytes;

	if (!load_g(reading, layout->g_ctype_state, layout_ref_size(layout), &cts) || cts == 0)
		return;
	bytes = heap_copy_view(reading->copy, cts, sizeof(begin));
	if (!bytes)
		return;
	memcpy(&begin, bytes, sizeof(begin));
	at = cts + sizeof(begin);
	if (begin.g != reading->g || begin.sizetab > CTYPES_MAX || begin.top > begin.sizetab ||
	    !load(reading->copy, at, POINTER, &first) || !load(reading->copy, at + POINTER, POINTER, &second))
		return;
	parts->ctypes = begin.tab;
	parts->ctype_top = begin.top;
	at += POINTER;
	parts->miscmap = first;
	if (is_table(reading, second)) {
		at += POINTER;
		parts->finalizer = first;
		parts->miscmap = second;
	}
	at = find_callback_end(reading, at, &begin);
	bytes = at ? heap_copy_view(reading->copy, at, sizeof(callback)) : NULL;
	if (!bytes)
		return;
	memcpy(&callback, bytes, sizeof(callback));
	add(reading, "C types",
	    at + sizeof(callback) + sizeof(struct ctype_hash) - cts + begin.sizetab * ctype, begin.sizetab,
	    begin.top);
	add(reading, "callbacks", callback.sizeid * sizeof(uint16_t), callback.sizeid, callback.topid);
}

void vm_parts_read(struct heap_copy *copy, const struct vm_code *vm, uint64_t g, struct vm_parts *ret_parts)
{
	struct reading reading = {
		.copy = copy, .vm = vm, .layout = &vm->layout, .g = g, .parts = ret_parts
	};

	*ret_parts = (struct vm_parts){ .count = 0 };
	add(&reading, "global_State", global_state_bytes(&reading), 0, 0);
	add_string_table(&reading);
	add_buffer(&reading);
	add_light_userdata(&reading);
	add_trace_compiler(&reading);
	add_ctypes(&reading);
}
