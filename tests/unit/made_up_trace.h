/* SPDX-License-Identifier: MIT */
/*
 * made_up_trace: a trace's block with IR, snapshots and their map, which a test writes part by part.
 */
#ifndef LJSPY_MADE_UP_TRACE_H
#define LJSPY_MADE_UP_TRACE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/lua/luajit.h"
#include "unwind/trace/trace_block.h"

enum {
	MADE_UP_TRACE = 0x10000,
	MADE_UP_MCODE = 0x70000,
	MADE_UP_NK = TRACE_REF_BIAS - 64, /* of constants, and as many instructions */
	MADE_UP_NINS = TRACE_REF_BIAS + 64,
	MADE_UP_IR = 64, /* behind the header */
	MADE_UP_SNAPSHOTS = MADE_UP_IR + (MADE_UP_NINS - MADE_UP_NK) * TRACE_IR_SIZE,
	MADE_UP_SNAPSHOTS_MAX = 16,
	MADE_UP_SNAPSHOT_SIZE = 12,
	MADE_UP_MAP = MADE_UP_SNAPSHOTS + MADE_UP_SNAPSHOTS_MAX * MADE_UP_SNAPSHOT_SIZE,
	MADE_UP_MAP_MAX = 512,
	MADE_UP_TRACE_BYTES = MADE_UP_MAP + MADE_UP_MAP_MAX * TRACE_SNAP_SIZE,

	/* Places in an IR instruction (lj_ir.h, IRIns). */
	MADE_UP_IR_TYPE = 4,
	MADE_UP_IR_OP = 5,
	MADE_UP_IR_REG = 6,
	MADE_UP_IR_SPILL = 7,
};

#define MADE_UP_TRACE_LAYOUT \
	.bytecode = BYTECODE_V21, .IR_KGC = 24, .GCtrace_nsnap = 4, .GCtrace_nins = 8, .GCtrace_nk = 12, \
	.GCtrace_ir = 16, .GCtrace_snap = 24, .GCtrace_snapmap = 32, .GCtrace_mcloop = 40, \
	.GCtrace_link = 44, .GCtrace_linktype = 46, .SnapShot_mapofs = 0, .SnapShot_ref = 4, \
	.SnapShot_mcofs = 6, .SnapShot_nslots = 8, .SnapShot_nent = 10, .SnapShot_count = 11, \
	.SnapShot_size = MADE_UP_SNAPSHOT_SIZE

struct made_up_trace {
	struct layout layout;
	struct trace trace;
	uint8_t bytes[MADE_UP_TRACE_BYTES];
	uint32_t map_count; /* entries of the map so far */
};

static inline void trace_put(struct made_up_trace *made_up, int32_t offset, uint64_t value, size_t size)
{
	memcpy(made_up->bytes + offset, &value, size);
}

/* All IR is there, and is IR_LT of nothing. */
static inline void made_up_trace_begin(struct made_up_trace *made_up, bool gc64)
{
	*made_up = (struct made_up_trace){ .layout = { .gc64 = gc64, MADE_UP_TRACE_LAYOUT } };
	made_up->trace = (struct trace){
		.address = MADE_UP_TRACE,
		.number = 1,
		.mcode = MADE_UP_MCODE,
		.bytes = made_up->bytes,
		.size = sizeof(made_up->bytes),
	};
	trace_put(made_up, made_up->layout.GCtrace_nins, MADE_UP_NINS, 4);
	trace_put(made_up, made_up->layout.GCtrace_nk, MADE_UP_NK, 4);
	trace_put(made_up, made_up->layout.GCtrace_ir,
		  MADE_UP_TRACE + MADE_UP_IR - (uint64_t)MADE_UP_NK * TRACE_IR_SIZE, 8);
	trace_put(made_up, made_up->layout.GCtrace_snap, MADE_UP_TRACE + MADE_UP_SNAPSHOTS, 8);
	trace_put(made_up, made_up->layout.GCtrace_snapmap, MADE_UP_TRACE + MADE_UP_MAP, 8);
}

static inline int32_t ir_place(uint32_t ref)
{
	return (int32_t)(MADE_UP_IR + (ref - MADE_UP_NK) * TRACE_IR_SIZE);
}

/* The number of an opcode in builds with this layout. Ends the program if they have none. */
static inline uint8_t ir_number(const struct layout *layout, enum ir_op op)
{
	struct made_up_trace made_up;
	struct trace_instruction ins;

	made_up_trace_begin(&made_up, layout->gc64);
	made_up.layout.IR_KGC = layout->IR_KGC;
	made_up.layout.GCstr_len = layout->GCstr_len;
	made_up.layout.SnapShot_mcofs = layout->SnapShot_mcofs;
	for (unsigned number = 0; number < UINT8_MAX; number++) {
		trace_put(&made_up, ir_place(TRACE_REF_BASE) + MADE_UP_IR_OP, number, 1);
		if (trace_instruction(&made_up.trace, &made_up.layout, TRACE_REF_BASE, &ins) && ins.op == op)
			return (uint8_t)number;
	}
	abort();
}

/* type may have the bits of a guard and of a PHI's operand. */
static inline void put_ir(struct made_up_trace *made_up, uint32_t ref, enum ir_op op, uint8_t type,
			  uint16_t op1, uint16_t op2)
{
	int32_t at = ir_place(ref);

	trace_put(made_up, at, op1, 2);
	trace_put(made_up, at + 2, op2, 2);
	trace_put(made_up, at + MADE_UP_IR_TYPE, type, 1);
	trace_put(made_up, at + MADE_UP_IR_OP, ir_number(&made_up->layout, op), 1);
	trace_put(made_up, at + MADE_UP_IR_REG, UINT8_MAX, 1);
}

static inline void put_ir_place(struct made_up_trace *made_up, uint32_t ref, uint8_t reg, uint8_t spill)
{
	trace_put(made_up, ir_place(ref) + MADE_UP_IR_REG, reg, 1);
	trace_put(made_up, ir_place(ref) + MADE_UP_IR_SPILL, spill, 1);
}

/* A constant whose value lies behind it, in the place of the next one. */
static inline void put_wide(struct made_up_trace *made_up, uint32_t ref, enum ir_op op, uint8_t type,
			    uint64_t value)
{
	put_ir(made_up, ref, op, type, 0, 0);
	trace_put(made_up, ir_place(ref + 1), value, 8);
}

/* An object: in a place of its own with 64-bit references, else where others have operands. */
static inline void put_object(struct made_up_trace *made_up, uint32_t ref, uint8_t type, uint32_t object)
{
	put_ir(made_up, ref, IR_KGC, type, (uint16_t)object, (uint16_t)(object >> 16));
	if (made_up->layout.gc64)
		put_wide(made_up, ref, IR_KGC, type, object);
}

/* The next snapshot: its first instruction, where its code begins, and entries of the map. */
static inline void put_snapshot(struct made_up_trace *made_up, uint32_t ref, uint32_t mcofs,
				const uint32_t *entries, size_t count)
{
	const struct layout *layout = &made_up->layout;
	uint16_t number;
	int32_t at;

	memcpy(&number, made_up->bytes + layout->GCtrace_nsnap, sizeof(number));
	at = MADE_UP_SNAPSHOTS + number * layout->SnapShot_size;
	trace_put(made_up, layout->GCtrace_nsnap, number + 1u, 2);
	trace_put(made_up, at + layout->SnapShot_mapofs, made_up->map_count,
		  layout->SnapShot_size == MADE_UP_SNAPSHOT_SIZE ? 4 : 2);
	trace_put(made_up, at + layout->SnapShot_ref, ref, 2);
	if (layout->SnapShot_mcofs != LAYOUT_ABSENT)
		trace_put(made_up, at + layout->SnapShot_mcofs, mcofs, 2);
	trace_put(made_up, at + layout->SnapShot_nent, count, 1);
	for (size_t i = 0; i < count; i++)
		trace_put(made_up, MADE_UP_MAP + (int32_t)made_up->map_count++ * TRACE_SNAP_SIZE, entries[i],
			  TRACE_SNAP_SIZE);
}

/* A word of the map behind the entries of the last snapshot. */
static inline void put_map_word(struct made_up_trace *made_up, uint32_t word)
{
	trace_put(made_up, MADE_UP_MAP + (int32_t)made_up->map_count++ * TRACE_SNAP_SIZE, word,
		  TRACE_SNAP_SIZE);
}

#endif
