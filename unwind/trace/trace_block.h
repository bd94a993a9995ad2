/* SPDX-License-Identifier: MIT */
/*
 * trace_block: read a GCtrace's IR and snapshots.
 *
 * It works on the copy in struct trace, and checks every reference.
 * Facts: lj_ir.h (IRIns), lj_jit.h (SnapShot, SNAP()), lj_snap.c.
 */
#ifndef LJSPY_TRACE_BLOCK_H
#define LJSPY_TRACE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "unwind/trace/trace.h"

/* IR opcodes, independent of their numbers; names as in lj_ir.h. */
enum ir_op {
#define IR_OP(name) IR_##name,
#define OP_ALL IR_OP
#define OP_V21 IR_OP
#define OP_ATAN2 IR_OP
#define OP_ALEN IR_OP
#define OP_TMPREF IR_OP
#include "unwind/trace/ir_ops.inc"
#undef IR_OP
#undef OP_ALL
#undef OP_V21
#undef OP_ATAN2
#undef OP_ALEN
#undef OP_TMPREF
	IR__MAX /* also: an unknown opcode */
};

enum {
	TRACE_IR_SIZE = 8,               /* IRIns */
	TRACE_SNAP_SIZE = 4,             /* SnapEntry */
	TRACE_REF_BIAS = 0x8000,         /* constants are below, instructions from here on */
	TRACE_REF_BASE = TRACE_REF_BIAS, /* the first one, IR_BASE: a side trace's parent and exit */
	TRACE_SLOTS = 256,               /* more than LJ_MAX_JSLOTS */
	TRACE_REGISTERS = 64,            /* RID_*: general, then vector registers; at most 32 of each */
};

/* The IRType values that matter here. */
enum {
	IRT_NIL = 0,
	IRT_FALSE = 1,
	IRT_TRUE = 2,
	IRT_STR = 4,
	IRT_PROTO = 7,
	IRT_FUNC = 8,
	IRT_CDATA = 10,
	IRT_TAB = 11,
	IRT_NUM = 14,
	IRT_INT = 19
};

struct trace_instruction {
	enum ir_op op;
	uint8_t number; /* of the opcode, in this build */
	uint8_t type;   /* IRT_* */
	bool guard;
	bool is_phi;   /* its value goes round the loop (IRT_ISPHI) */
	uint8_t reg;   /* its result's register; TRACE_REGISTERS and above: none */
	uint8_t spill; /* its result's place on the native stack, in 4 bytes; 0: none */
	uint16_t op1, op2;
};

/*
 * Of IR_UREFO and IR_UREFC: which upvalue of its function. A hash is below it (lj_record.c, rec_upvalue()).
 */
static inline unsigned trace_upvalue_index(const struct trace_instruction *ins)
{
	return ins->op2 >> 8;
}

/* Does a build of 2.1 have IR_ALEN (since May 2020)? */
bool trace_has_alen(const struct layout *layout);

/* The reference after the last instruction. */
uint32_t trace_nins(const struct trace *trace, const struct layout *layout);

/* The constant or instruction at a reference. False if there is none. */
bool trace_instruction(const struct trace *trace, const struct layout *layout, uint32_t ref,
		       struct trace_instruction *ret_instruction);

/* A constant's value: an object's or C address, a number's bits, or an integer. False if it has none. */
bool trace_constant(const struct trace *trace, const struct layout *layout, uint32_t ref,
		    uint64_t *ret_value);

struct trace_snapshot {
	uint32_t ref;   /* its first instruction */
	uint32_t mcofs; /* the offset of their code in bytes; 0 in builds without it */
	uint8_t count;  /* how often its exit was taken, as LuaJIT counts it */
};

/* The number of snapshots, and one of them. False if there is no such snapshot. */
uint32_t trace_snapshot_count(const struct trace *trace, const struct layout *layout);
bool trace_snapshot(const struct trace *trace, const struct layout *layout, uint32_t number,
		    struct trace_snapshot *ret_snapshot);

/*
 * The snapshot in force at pc: the last one whose code begins at or before it. False in builds without mcofs.
 */
bool trace_snapshot_at(const struct trace *trace, const struct layout *layout, uint64_t pc,
		       uint32_t *ret_number);

/* A snapshot's references by slot (as IR_SLOAD numbers them); 0 where it has none. False if unreadable. */
bool trace_snapshot_refs(const struct trace *trace, const struct layout *layout, uint32_t number,
			 uint32_t ret_refs[static TRACE_SLOTS]);

/*
 * A snapshot's entries as LuaJIT keeps them (lj_jit.h, SNAP()), in the order of their slots, and
 * the number of slots that they are for. Returns how many; 0 if unreadable.
 */
enum { TRACE_ENTRIES_MAX = 255 };

size_t trace_snapshot_entries(const struct trace *trace, const struct layout *layout, uint32_t number,
			      uint32_t ret_entries[static TRACE_ENTRIES_MAX], uint32_t *ret_slots);

/* A side trace's parent and the exit where it starts. False for a root trace. */
bool trace_parent(const struct trace *trace, const struct layout *layout, uint32_t *ret_parent,
		  uint32_t *ret_exitno);

/* The number of the trace that it jumps to at its end; 0 if it ends otherwise. */
uint32_t trace_link(const struct trace *trace, const struct layout *layout);

/* How it ends: TraceLink (lj_jit.h). */
unsigned trace_linktype(const struct trace *trace, const struct layout *layout);

/* The reference of its first constant, which may be that of the second half of a wide one. */
uint32_t trace_nk(const struct trace *trace, const struct layout *layout);

/* Where its loop begins in the machine code; 0 if it has none. */
uint32_t trace_loop_offset(const struct trace *trace, const struct layout *layout);

/* The functions or prototypes among a trace's constants, at most max. Return how many. */
enum trace_constant { TRACE_FUNCTIONS, TRACE_PROTOS };

size_t trace_constants(const struct trace *trace, const struct layout *layout, enum trace_constant kind,
		       uint64_t *ret_objects, size_t max);

/*
 * The frames of a trace at pc by its snapshots only: those of the last snapshot whose code begins at or
 * before pc. 0 in builds without SnapShot.mcofs.
 */
size_t trace_frames(const struct trace *trace, const struct layout *layout, uint64_t pc,
		    struct trace_frame *ret_frames, size_t max);

/* The same for the snapshot that an exit restores. */
size_t trace_exit_frames(const struct trace *trace, const struct layout *layout, uint32_t exitno,
			 struct trace_frame *ret_frames, size_t max);

#endif
