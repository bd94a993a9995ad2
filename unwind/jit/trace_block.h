/* SPDX-License-Identifier: MIT */
/*
 * trace_block: what stands in a GCtrace: its IR, its snapshots.
 *
 * Works on the copy of the block that a struct trace has; every reference is
 * checked. Facts: lj_ir.h (IRIns), lj_jit.h (SnapShot, SNAP()), lj_snap.c.
 */
#ifndef LJSPY_TRACE_BLOCK_H
#define LJSPY_TRACE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "unwind/jit/traces.h"

/* IR opcodes apart from their numbers, named as in lj_ir.h. */
enum ir_op {
#define IR_OP(name) IR_##name,
#define OP_ALL IR_OP
#define OP_V21 IR_OP
#define OP_ATAN2 IR_OP
#define OP_ALEN IR_OP
#define OP_TMPREF IR_OP
#include "unwind/jit/ir_ops.inc"
#undef IR_OP
#undef OP_ALL
#undef OP_V21
#undef OP_ATAN2
#undef OP_ALEN
#undef OP_TMPREF
	IR__MAX		/* also: no opcode of this numbering */
};

enum {
	TRACE_IR_SIZE = 8,		/* IRIns */
	TRACE_SNAP_SIZE = 4,		/* SnapEntry */
	TRACE_REF_BIAS = 0x8000,	/* constants are below, instructions from here on */
	TRACE_REF_BASE = TRACE_REF_BIAS,	/* the first one is IR_BASE: a side trace's parent and exit */
	TRACE_SLOTS = 256,		/* more than LJ_MAX_JSLOTS */
	TRACE_REGISTERS = 32,		/* RID_*: 16 general, then 16 vector registers */
};

/* IRType, as far as it matters here. */
enum { IRT_NIL = 0, IRT_STR = 4, IRT_PROTO = 7, IRT_FUNC = 8, IRT_TAB = 11, IRT_NUM = 14, IRT_INT = 19 };

struct trace_instruction {
	enum ir_op op;
	uint8_t type;			/* IRT_* */
	bool guard;
	uint8_t reg;			/* where its result was put; TRACE_REGISTERS and above: nowhere */
	uint8_t spill;			/* where on the native stack it was kept, in 4 bytes; 0: nowhere */
	uint16_t op1, op2;
};

/* The end of its instructions. */
uint32_t trace_nins(const struct trace *trace, const struct layout *layout);

bool trace_instruction(const struct trace *trace, const struct layout *layout, uint32_t ref,
		       struct trace_instruction *ret_instruction);

/* A constant's value: the object's or C address, the number's bits, the integer; false if it is none. */
bool trace_constant(const struct trace *trace, const struct layout *layout, uint32_t ref,
		    uint64_t *ret_value);

struct trace_snapshot {
	uint32_t ref;		/* instructions from here on belong to it */
	uint32_t mcofs;		/* where their code begins; 0 in builds that do not tell */
};

uint32_t trace_snapshot_count(const struct trace *trace, const struct layout *layout);
bool trace_snapshot(const struct trace *trace, const struct layout *layout, uint32_t number,
		    struct trace_snapshot *ret_snapshot);

/* The references that a snapshot holds, by slot (as IR_SLOAD numbers them); 0 where it has none. */
bool trace_snapshot_refs(const struct trace *trace, const struct layout *layout, uint32_t number,
			 uint32_t ret_refs[static TRACE_SLOTS]);

/* Parent and exit that a side trace grew from; false for a root trace. */
bool trace_parent(const struct trace *trace, const struct layout *layout, uint32_t *ret_parent,
		  uint32_t *ret_exitno);

/* The number of the trace that it ends in a jump to; 0 if it ends otherwise. */
uint32_t trace_link(const struct trace *trace, const struct layout *layout);

#endif
