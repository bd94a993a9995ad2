/* SPDX-License-Identifier: MIT */
/*
 * bytecode: LuaJIT's opcodes, in the numbering of a build.
 *
 * An instruction is 32 bits: opcode in the low byte, then A, and either C and
 * B (a byte each) or D (16 bits) above it; see lj_bc.h.
 */
#ifndef LJSPY_BYTECODE_H
#define LJSPY_BYTECODE_H

#include <stdint.h>

#include "luajit-layouts/layout.h"

/* An opcode regardless of its number, named as in lj_bc.h. */
enum bytecode_op {
#define BYTECODE_OP(name, a, b, c, mm) BC_##name,
#define OP_ALL BYTECODE_OP
#define OP_V21 BYTECODE_OP
#define OP_BITOPS BYTECODE_OP
#include "luajit-layouts/bytecode_ops.inc"
#undef BYTECODE_OP
#undef OP_ALL
#undef OP_V21
#undef OP_BITOPS
	BC__MAX /* also: no opcode of this numbering */
};

/* What an operand means (BCMode). */
enum bytecode_mode {
	BCMnone,
	BCMdst,
	BCMbase,
	BCMvar,
	BCMrbase,
	BCMuv, /* A has one of these */
	BCMlit,
	BCMlits,
	BCMpri,
	BCMnum,
	BCMstr,
	BCMtab,
	BCMfunc,
	BCMjump,
	BCMcdata
};

/* The metamethod an instruction may call (MMS; MM_gc: it may take a GC step). */
enum bytecode_mm {
	MM_index,
	MM_newindex,
	MM_gc,
	MM_mode,
	MM_eq,
	MM_len,
	MM_lt,
	MM_le,
	MM_concat,
	MM_call,
	MM_add,
	MM_sub,
	MM_mul,
	MM_div,
	MM_mod,
	MM_pow,
	MM_unm,
	MM_none
};

/* number is the low byte of an instruction. */
enum bytecode_op bytecode_op(const struct layout *layout, uint8_t number);

/* How many opcodes this layout's numbering has (BC__MAX). */
int bytecode_count(const struct layout *layout);

/* The number of op in this layout's numbering, or -1. */
int bytecode_number(const struct layout *layout, enum bytecode_op op);

/* A constant such as "CALLM"; NULL where number is no opcode. */
const char *bytecode_name(const struct layout *layout, uint8_t number);

/* BCMnone and MM_none where number is no opcode. */
enum bytecode_mode bytecode_mode_a(const struct layout *layout, uint8_t number);
enum bytecode_mode bytecode_mode_b(const struct layout *layout, uint8_t number);
enum bytecode_mode bytecode_mode_c(const struct layout *layout, uint8_t number);
enum bytecode_mm bytecode_mm(const struct layout *layout, uint8_t number);

/* "index" for "__index", as in LuaJIT's tracebacks; NULL for MM_none. */
const char *bytecode_mm_name(enum bytecode_mm mm);

static inline uint8_t bytecode_a(uint32_t instruction)
{
	return (uint8_t)(instruction >> 8);
}

static inline uint8_t bytecode_b(uint32_t instruction)
{
	return (uint8_t)(instruction >> 24);
}

static inline uint8_t bytecode_c(uint32_t instruction)
{
	return (uint8_t)(instruction >> 16);
}

static inline uint16_t bytecode_d(uint32_t instruction)
{
	return (uint16_t)(instruction >> 16);
}

/* How many instructions a jump goes on from the next one (bc_j). */
static inline int32_t bytecode_j(uint32_t instruction)
{
	enum { BCBIAS_J = 0x8000 };

	return (int32_t)bytecode_d(instruction) - BCBIAS_J;
}

#endif
