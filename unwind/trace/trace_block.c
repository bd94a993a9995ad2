/* SPDX-License-Identifier: MIT */
#include "unwind/trace/trace_block.h"

#include <string.h>

#include "unwind/elf/registers.h"
#include "unwind/lua/luajit.h"

/* IR constants and instructions (lj_ir.h); references are biased. */
enum {
	IR_T = 4, /* offset of IRIns.t */
	IR_O = 5, /* offset of IRIns.o */
	IR_R = 6, /* offset of IRIns.r */
	IR_S = 7, /* offset of IRIns.s */
	IRT_GUARD = 0x80,
	IRT_ISPHI = 0x40,
	IRT_TYPE = 0x1f,
};

/* Snapshot map entries (lj_jit.h, SNAP()). */
enum {
	SNAP_FRAME = 0x010000,
	SNAP_CONT = 0x020000,
	SNAP_REF = 0xffff,
	SNAP_SLOT_SHIFT = 24,
};

/* The copied bytes at an address in the target, or NULL. */
static const uint8_t *at(const struct trace *trace, uint64_t address, size_t length)
{
	uint64_t offset = address - trace->address;

	if (!trace->bytes || address < trace->address || offset > trace->size ||
	    length > trace->size - offset)
		return NULL;
	return trace->bytes + offset;
}

static uint64_t field(const struct trace *trace, int32_t offset, unsigned size)
{
	const uint8_t *bytes = at(trace, trace->address + (uint64_t)offset, size);

	return bytes ? load_bytes(bytes, 0, size) : 0;
}

static const uint8_t *ir(const struct trace *trace, const struct layout *layout, uint32_t ref)
{
	return at(trace, field(trace, layout->GCtrace_ir, 8) + (uint64_t)ref * TRACE_IR_SIZE,
		  layout->gc64 ? 2 * TRACE_IR_SIZE : TRACE_IR_SIZE);
}

/*---- IR ----*/

#define NUMBERED(name) IR_##name,
#define ABSENT(name)

/* 2.0. */
static const uint8_t ir_v20[] = {
#define OP_ALL NUMBERED
#define OP_V21 ABSENT
#define OP_ATAN2 NUMBERED
#define OP_ALEN ABSENT
#define OP_TMPREF ABSENT
#include "unwind/trace/ir_ops.inc"
};

/* 2.1 until May 2020. */
#undef OP_V21
#define OP_V21 NUMBERED
static const uint8_t ir_v21_atan2[] = {
#include "unwind/trace/ir_ops.inc"
};

/* 2.1 until July 2021. */
#undef OP_ATAN2
#undef OP_ALEN
#define OP_ATAN2 ABSENT
#define OP_ALEN NUMBERED
static const uint8_t ir_v21_alen[] = {
#include "unwind/trace/ir_ops.inc"
};

#undef OP_TMPREF
#define OP_TMPREF NUMBERED
static const uint8_t ir_v21[] = {
#include "unwind/trace/ir_ops.inc"
};

enum { IR_KGC_V20 = 23, GCSTR_LEN_SID = 12 };

bool trace_has_alen(const struct layout *layout)
{
	return layout->SnapShot_mcofs != LAYOUT_ABSENT ||
	       layout->GCstr_len == (int32_t)layout_ref_size(layout) + GCSTR_LEN_SID;
}

/*
 * The numbering changed with, or within weeks of, a visible change of the layout:
 * the longer GCstr (June 2020) and SnapShot.mcofs (March 2021).
 */
static enum ir_op ir_op(const struct layout *layout, uint8_t number)
{
	const uint8_t *ops = ir_v21;
	size_t count = sizeof(ir_v21);

	if (layout->IR_KGC == IR_KGC_V20) {
		ops = ir_v20;
		count = sizeof(ir_v20);
	} else if (layout->SnapShot_mcofs == LAYOUT_ABSENT) {
		bool has_alen = trace_has_alen(layout);

		ops = has_alen ? ir_v21_alen : ir_v21_atan2;
		count = has_alen ? sizeof(ir_v21_alen) : sizeof(ir_v21_atan2);
	}
	return number < count ? (enum ir_op)ops[number] : IR__MAX;
}

uint32_t trace_nk(const struct trace *trace, const struct layout *layout)
{
	return (uint32_t)field(trace, layout->GCtrace_nk, 4);
}

uint32_t trace_nins(const struct trace *trace, const struct layout *layout)
{
	uint32_t nins = (uint32_t)field(trace, layout->GCtrace_nins, 4);

	return nins > UINT16_MAX ? UINT16_MAX : nins;
}

bool trace_instruction(const struct trace *trace, const struct layout *layout, uint32_t ref,
		       struct trace_instruction *ret_instruction)
{
	const uint8_t *bytes = at(trace, field(trace, layout->GCtrace_ir, 8) + (uint64_t)ref * TRACE_IR_SIZE,
				  TRACE_IR_SIZE);

	if (!bytes || ref >= trace_nins(trace, layout) || ref < trace_nk(trace, layout))
		return false;
	*ret_instruction = (struct trace_instruction){
		.op = ir_op(layout, bytes[IR_O]),
		.number = bytes[IR_O],
		.type = bytes[IR_T] & IRT_TYPE,
		.guard = bytes[IR_T] & IRT_GUARD,
		.is_phi = bytes[IR_T] & IRT_ISPHI,
		.reg = bytes[IR_R],
		.spill = bytes[IR_S],
		.op1 = (uint16_t)load_bytes(bytes, 0, 2),
		.op2 = (uint16_t)load_bytes(bytes, 2, 2),
	};
	return true;
}

bool trace_constant(const struct trace *trace, const struct layout *layout, uint32_t ref, uint64_t *ret_value)
{
	uint64_t address = field(trace, layout->GCtrace_ir, 8) + (uint64_t)ref * TRACE_IR_SIZE;
	const uint8_t *narrow = at(trace, address, TRACE_IR_SIZE);
	const uint8_t *wide = at(trace, address, 2 * TRACE_IR_SIZE);
	struct trace_instruction constant;

	if (ref >= TRACE_REF_BIAS || !narrow || !wide || !trace_instruction(trace, layout, ref, &constant))
		return false;
	switch ((int)constant.op) {
	case IR_KINT: *ret_value = (uint64_t)(int32_t)load_bytes(narrow, 0, 4); return true;
	case IR_KGC:
	case IR_KPTR:
	case IR_KKPTR:
		*ret_value = layout->gc64 ? load_bytes(wide, TRACE_IR_SIZE, 8) : load_bytes(narrow, 0, 4);
		return true;
	case IR_KNUM:
	case IR_KINT64: *ret_value = load_bytes(wide, TRACE_IR_SIZE, 8); return true;
	default: return false;
	}
}

/* The object of a constant of this IR type, or 0 if it has another type. */
static uint64_t constant_object(const struct trace *trace, const struct layout *layout, uint32_t ref,
				uint8_t type)
{
	const uint8_t *constant = ref < TRACE_REF_BIAS ? ir(trace, layout, ref) : NULL;

	if (!constant || constant[IR_O] != layout->IR_KGC || (constant[IR_T] & IRT_TYPE) != type)
		return 0;
	return layout->gc64 ? load_bytes(constant, TRACE_IR_SIZE, 8) : load_bytes(constant, 0, 4);
}

size_t trace_constants(const struct trace *trace, const struct layout *layout, enum trace_constant kind,
		       uint64_t *ret_objects, size_t max)
{
	uint32_t nk = (uint32_t)field(trace, layout->GCtrace_nk, 4);
	uint8_t type = kind == TRACE_FUNCTIONS ? IRT_FUNC : IRT_PROTO;
	size_t count = 0;

	for (uint32_t ref = nk; trace->bytes && ref < TRACE_REF_BIAS && count < max; ref++) {
		uint64_t object = constant_object(trace, layout, ref, type);

		if (object)
			ret_objects[count++] = object;
	}
	return count;
}

bool trace_parent(const struct trace *trace, const struct layout *layout, uint32_t *ret_parent,
		  uint32_t *ret_exitno)
{
	struct trace_instruction base;

	if (trace->root == 0 || !trace_instruction(trace, layout, TRACE_REF_BASE, &base) ||
	    base.op != IR_BASE)
		return false;
	*ret_parent = base.op1;
	*ret_exitno = base.op2;
	return true;
}

uint32_t trace_link(const struct trace *trace, const struct layout *layout)
{
	return (uint32_t)field(trace, layout->GCtrace_link, 2);
}

unsigned trace_linktype(const struct trace *trace, const struct layout *layout)
{
	return (unsigned)field(trace, layout->GCtrace_linktype, 1);
}

uint32_t trace_loop_offset(const struct trace *trace, const struct layout *layout)
{
	return (uint32_t)field(trace, layout->GCtrace_mcloop, 4);
}

/*---- Snapshots ----*/

uint32_t trace_snapshot_count(const struct trace *trace, const struct layout *layout)
{
	return (uint32_t)field(trace, layout->GCtrace_nsnap, 2);
}

static const uint8_t *snapshot_number(const struct trace *trace, const struct layout *layout, uint64_t number)
{
	uint64_t snap = field(trace, layout->GCtrace_snap, 8);

	return number < field(trace, layout->GCtrace_nsnap, 2)
		       ? at(trace, snap + number * (uint64_t)layout->SnapShot_size,
			    (size_t)layout->SnapShot_size)
		       : NULL;
}

bool trace_snapshot(const struct trace *trace, const struct layout *layout, uint32_t number,
		    struct trace_snapshot *ret_snapshot)
{
	const uint8_t *snapshot = snapshot_number(trace, layout, number);

	if (!snapshot)
		return false;
	ret_snapshot->ref = (uint32_t)load_bytes(snapshot, layout->SnapShot_ref, 2);
	ret_snapshot->mcofs = layout->SnapShot_mcofs == LAYOUT_ABSENT
				      ? 0
				      : (uint32_t)load_bytes(snapshot, layout->SnapShot_mcofs, 2) *
						MCODE_BYTES;
	ret_snapshot->count = (uint8_t)load_bytes(snapshot, layout->SnapShot_count, 1);
	return true;
}

bool trace_snapshot_at(const struct trace *trace, const struct layout *layout, uint64_t pc,
		       uint32_t *ret_number)
{
	uint32_t count = trace_snapshot_count(trace, layout);
	bool found = false;

	if (layout->SnapShot_mcofs == LAYOUT_ABSENT)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *snapshot = snapshot_number(trace, layout, i);

		/* Snapshots that no guard uses may have any offset. */
		if (snapshot &&
		    trace->mcode + load_bytes(snapshot, layout->SnapShot_mcofs, 2) * MCODE_BYTES <= pc) {
			*ret_number = i;
			found = true;
		}
	}
	return found;
}

static const uint8_t *snapshot_at(const struct trace *trace, const struct layout *layout, uint64_t pc)
{
	uint32_t number;

	return trace_snapshot_at(trace, layout, pc, &number) ? snapshot_number(trace, layout, number) : NULL;
}

/* A slot in a snapshot's map. */
struct slot {
	uint32_t entry; /* 0 if the slot is not in the map */
	uint64_t link;  /* of a frame or continuation slot */
};

enum { SLOTS = TRACE_SLOTS };

struct slots {
	struct slot slot[SLOTS];
	uint64_t pc; /* where the interpreter would resume */
};

static bool load_entry(const struct trace *trace, const struct layout *layout, uint64_t index,
		       uint32_t *ret_entry)
{
	uint64_t snapmap = field(trace, layout->GCtrace_snapmap, 8);
	const uint8_t *bytes = at(trace, snapmap + index * TRACE_SNAP_SIZE, TRACE_SNAP_SIZE);

	if (!bytes)
		return false;
	*ret_entry = (uint32_t)load_bytes(bytes, 0, TRACE_SNAP_SIZE);
	return true;
}

/* GC64: each link is a 64-bit constant in its slot. The pc shares a word with the base slot. */
static bool load_links_gc64(const struct trace *trace, const struct layout *layout, uint64_t behind,
			    struct slots *slots)
{
	uint32_t low, high;

	if (!load_entry(trace, layout, behind, &low) || !load_entry(trace, layout, behind + 1, &high))
		return false;
	slots->pc = ((uint64_t)high << 32 | low) >> 8;
	for (unsigned s = 2; s < SLOTS; s++) {
		const uint8_t *constant;

		if (!(slots->slot[s].entry & (SNAP_FRAME | SNAP_CONT)))
			continue;
		constant = ir(trace, layout, slots->slot[s].entry & SNAP_REF);
		if (!constant)
			return false;
		slots->slot[s].link = load_bytes(constant, TRACE_IR_SIZE, 8);
	}
	return true;
}

/* GC32: after the entries follow the pc and the links, innermost first. */
static bool load_links_gc32(const struct trace *trace, const struct layout *layout, uint64_t behind,
			    struct slots *slots)
{
	uint32_t word;

	if (!load_entry(trace, layout, behind, &word))
		return false;
	slots->pc = word;
	for (unsigned s = SLOTS - 1; s > 0; s--) {
		if (!(slots->slot[s].entry & (SNAP_FRAME | SNAP_CONT)))
			continue;
		if (!load_entry(trace, layout, ++behind, &word))
			return false;
		slots->slot[s].link = word;
	}
	return true;
}

static uint64_t mapofs_of(const struct layout *layout, const uint8_t *snapshot)
{
	return load_bytes(snapshot, layout->SnapShot_mapofs, layout->SnapShot_size > 8 ? 4 : 2);
}

size_t trace_snapshot_entries(const struct trace *trace, const struct layout *layout, uint32_t number,
			      uint32_t ret_entries[static TRACE_ENTRIES_MAX], uint32_t *ret_slots)
{
	const uint8_t *snapshot = snapshot_number(trace, layout, number);
	size_t count = snapshot ? (size_t)load_bytes(snapshot, layout->SnapShot_nent, 1) : 0;

	for (size_t i = 0; i < count; i++)
		if (!load_entry(trace, layout, mapofs_of(layout, snapshot) + i, &ret_entries[i]))
			return 0;
	if (snapshot)
		*ret_slots = (uint32_t)load_bytes(snapshot, layout->SnapShot_nslots, 1);
	return count;
}

static bool load_slots(const struct trace *trace, const struct layout *layout, const uint8_t *snapshot,
		       struct slots *slots)
{
	uint64_t mapofs = mapofs_of(layout, snapshot);
	uint64_t nent = load_bytes(snapshot, layout->SnapShot_nent, 1);

	memset(slots, 0, sizeof(*slots));
	for (uint64_t i = 0; i < nent; i++) {
		uint32_t entry;

		if (!load_entry(trace, layout, mapofs + i, &entry))
			return false;
		slots->slot[entry >> SNAP_SLOT_SHIFT].entry = entry;
	}
	return layout->gc64 ? load_links_gc64(trace, layout, mapofs + nent, slots)
			    : load_links_gc32(trace, layout, mapofs + nent, slots);
}

bool trace_snapshot_refs(const struct trace *trace, const struct layout *layout, uint32_t number,
			 uint32_t ret_refs[static TRACE_SLOTS])
{
	const uint8_t *snapshot = snapshot_number(trace, layout, number);
	struct slots slots;

	if (!snapshot || !load_slots(trace, layout, snapshot, &slots))
		return false;
	for (unsigned slot = 0; slot < SLOTS; slot++)
		ret_refs[slot] = slots.slot[slot].entry & SNAP_REF;
	return true;
}

static size_t snapshot_frames(const struct trace *trace, const struct layout *layout, const uint8_t *snapshot,
			      struct trace_frame *ret_frames, size_t max)
{
	unsigned fr2 = layout->gc64 ? 1 : 0; /* LJ_FR2: the function has its own slot */
	struct slots slots;
	uint64_t caller_pc;
	bool is_continuation = false, is_vararg = false;
	size_t count = 0;

	if (!snapshot || max < 2 || !load_slots(trace, layout, snapshot, &slots))
		return 0;
	caller_pc = slots.pc;
	for (unsigned s = SLOTS - 1; s > fr2; s--) {
		const struct slot *frame = &slots.slot[s];
		uint64_t link = frame->link;

		if (!(frame->entry & SNAP_FRAME) || (frame->entry & SNAP_CONT))
			continue;
		if (count == max - 1)
			return 0;
		if (!is_vararg)
			ret_frames[count++] = (struct trace_frame){
				.function = constant_object(trace, layout,
							    slots.slot[s - fr2].entry & SNAP_REF, IRT_FUNC),
				.pc = caller_pc,
				.is_continuation = is_continuation,
				.base_slot = (uint8_t)(s + 1),
			};
		is_vararg = (link & FRAME_TYPE_P) == FRAME_VARG;
		is_continuation = (link & FRAME_TYPE_P) == FRAME_CONT;
		if (is_vararg)
			continue;
		if (is_continuation)
			caller_pc = slots.slot[s - 1 - fr2].link - BYTECODE_SIZE;
		else if ((link & FRAME_LUA_MASK) == 0)
			caller_pc = link - BYTECODE_SIZE;
		else
			caller_pc = 0;
	}
	/*
	 * For a vararg function, the copy that runs above the start frame already stands for it. The start
	 * frame's function is in the snapshot if a tail call has replaced it.
	 */
	if (!is_vararg)
		ret_frames[count++] = (struct trace_frame){
			.function = constant_object(trace, layout, slots.slot[0].entry & SNAP_REF, IRT_FUNC),
			.pc = caller_pc,
			.is_continuation = is_continuation,
			.base_slot = (uint8_t)(fr2 + 1),
		};
	return count;
}

size_t trace_frames(const struct trace *trace, const struct layout *layout, uint64_t pc,
		    struct trace_frame *ret_frames, size_t max)
{
	return snapshot_frames(trace, layout, snapshot_at(trace, layout, pc), ret_frames, max);
}

size_t trace_exit_frames(const struct trace *trace, const struct layout *layout, uint32_t exitno,
			 struct trace_frame *ret_frames, size_t max)
{
	return snapshot_frames(trace, layout, snapshot_number(trace, layout, exitno), ret_frames, max);
}
