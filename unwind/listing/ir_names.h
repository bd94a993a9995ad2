/* SPDX-License-Identifier: MIT */
/*
 * ir_names: what the numbers in LuaJIT's IR stand for, by build.
 *
 * Opcodes have names in every build that ljspy knows (trace_block.h). Fields, C functions and
 * mathematical functions have other numbers from version to version; their names are those of
 * Debian's builds (ir_names.inc). Where it is not certain that a build numbers them like one of
 * these, they have no names.
 * Facts: lj_ir.h (IRMODE), lj_iropt.h, lj_ircall.h; jit/dump.lua.
 */
#ifndef LJSPY_IR_NAMES_H
#define LJSPY_IR_NAMES_H

#include "luajit-layouts/layout.h"
#include "unwind/trace/trace_block.h"

enum ir_numbering {
	NUMBERING_UNKNOWN,
	NUMBERING_BETA3,   /* 2.1.0-beta3 until 2020 */
	NUMBERING_V21,     /* 2.1 since 2021 */
	NUMBERING_LUAJIT2, /* OpenResty's, likewise */
	NUMBERING_COUNT
};

/* Of a build that has this layout and calls itself that (jit.version). */
enum ir_numbering ir_numbering(const struct layout *layout, const char *version);

/* What an operand of an instruction is (IRM*). */
enum ir_operand { OPERAND_REF, OPERAND_LITERAL, OPERAND_NONE };

struct ir_operands {
	enum ir_operand op1, op2;
};

struct ir_operands ir_operands(const struct layout *layout, enum ir_op op);

/* "SLOAD"; NULL for IR__MAX. And of an IRType: "int"; "?" if there is none. */
const char *ir_op_name(enum ir_op op);
const char *ir_type_name(unsigned type);

/* NULL if the number has no name, or is not known to have one. */
const char *ir_call_name(enum ir_numbering numbering, unsigned number);
const char *ir_field_name(enum ir_numbering numbering, unsigned number);
const char *ir_fpmath_name(enum ir_numbering numbering, unsigned number);

#endif
