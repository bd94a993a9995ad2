/* SPDX-License-Identifier: MIT */
#include "unwind/listing/ir_names.h"

#include <stdlib.h>
#include <string.h>

/*---- Numberings ----*/

/* The tables of a numbering, each as far as its first NULL. */
enum { NAMES_MAX = 128 };

enum table { irfpm, irfield, ircall, TABLE_COUNT };

static const char *const names[NUMBERING_COUNT][TABLE_COUNT][NAMES_MAX] = {
#define NAMES(numbering, table, ...) [NUMBERING_##numbering][table] = { __VA_ARGS__ },
#include "unwind/listing/ir_names.inc"
#undef NAMES
};

static const char *name_of(enum ir_numbering numbering, enum table table, unsigned number)
{
	return number < NAMES_MAX ? names[numbering][table][number] : NULL;
}

const char *ir_call_name(enum ir_numbering numbering, unsigned number)
{
	return name_of(numbering, ircall, number);
}

const char *ir_field_name(enum ir_numbering numbering, unsigned number)
{
	return name_of(numbering, irfield, number);
}

const char *ir_fpmath_name(enum ir_numbering numbering, unsigned number)
{
	return name_of(numbering, irfpm, number);
}

static const char beta3[] = "LuaJIT 2.1.0-beta3";

/*
 * Builds since August 2023 have the time of their last commit as third number. The names have not
 * changed from that of Debian bookworm to that of Debian sid, which is the last one known.
 */
static const unsigned long last_known_commit = 1761786044;

static bool is_known_version(const char *version)
{
	static const char rolling[] = "LuaJIT 2.1.";
	char *end;
	unsigned long commit;

	if (strcmp(version, beta3) == 0)
		return true;
	if (strncmp(version, rolling, sizeof(rolling) - 1) != 0)
		return false;
	commit = strtoul(version + sizeof(rolling) - 1, &end, 10);
	return *end == '\0' && commit > 0 && commit <= last_known_commit;
}

/*
 * SnapShot.mcofs came in March 2021. Builds from then until October 2021 call themselves
 * 2.1.0-beta3, too, and may have other numbers; no release is of that time.
 */
enum ir_numbering ir_numbering(const struct layout *layout, const char *version)
{
	bool is_luajit2 = layout->L_exdata != LAYOUT_ABSENT;

	if (layout->bytecode != BYTECODE_V21 || !is_known_version(version))
		return NUMBERING_UNKNOWN;
	if (layout->SnapShot_mcofs != LAYOUT_ABSENT) {
		if (is_luajit2)
			return layout->L_exdata2 != LAYOUT_ABSENT ? NUMBERING_LUAJIT2 : NUMBERING_UNKNOWN;
		return NUMBERING_V21;
	}
	return !is_luajit2 && !trace_has_alen(layout) && strcmp(version, beta3) == 0 ? NUMBERING_BETA3
										     : NUMBERING_UNKNOWN;
}

/*---- Instructions ----*/

const char *ir_op_name(enum ir_op op)
{
	static const char *const op_names[] = {
#define OP_NAME(name) [IR_##name] = #name,
#define OP_ALL OP_NAME
#define OP_V21 OP_NAME
#define OP_ATAN2 OP_NAME
#define OP_ALEN OP_NAME
#define OP_TMPREF OP_NAME
#include "unwind/trace/ir_ops.inc"
		[IR__MAX] = NULL,
	};

	return op_names[op];
}

const char *ir_type_name(unsigned type)
{
	static const char *const type_names[] = {
		"nil", "fal", "tru", "lud", "str", "p32", "thr", "pro", "fun", "p64", "cdt", "tab",
		"udt", "flt", "num", "i8 ", "u8 ", "i16", "u16", "int", "u32", "i64", "u64", "sfp",
	};

	return type < sizeof(type_names) / sizeof(*type_names) ? type_names[type] : "?";
}

struct ir_operands ir_operands(const struct layout *layout, enum ir_op op)
{
	switch ((int)op) {
	case IR_NOP:
	case IR_GCSTEP:
	case IR_LOOP:
	case IR_PROF:
	case IR_LREF:
	case IR_XBAR:
	case IR__MAX: return (struct ir_operands){ OPERAND_NONE, OPERAND_NONE };
	case IR_BASE:
	case IR_SLOAD:
	case IR_TNEW: return (struct ir_operands){ OPERAND_LITERAL, OPERAND_LITERAL };
	case IR_PVAL: return (struct ir_operands){ OPERAND_LITERAL, OPERAND_NONE };
	case IR_USE:
	case IR_BNOT:
	case IR_BSWAP:
	case IR_ALOAD:
	case IR_HLOAD:
	case IR_ULOAD:
	case IR_TDUP:
	case IR_TBAR:
	case IR_STRTO: return (struct ir_operands){ OPERAND_REF, OPERAND_NONE };
	case IR_VLOAD:
		return (struct ir_operands){ OPERAND_REF, layout->SnapShot_mcofs == LAYOUT_ABSENT
								  ? OPERAND_NONE
								  : OPERAND_LITERAL };
	case IR_TOSTR:
		return (struct ir_operands){ OPERAND_REF, layout->bytecode == BYTECODE_V20
								  ? OPERAND_NONE
								  : OPERAND_LITERAL };
	case IR_RENAME:
	case IR_FPMATH:
	case IR_UREFO:
	case IR_UREFC:
	case IR_FREF:
	case IR_TMPREF:
	case IR_FLOAD:
	case IR_XLOAD:
	case IR_BUFHDR:
	case IR_CONV:
	case IR_CALLN:
	case IR_CALLA:
	case IR_CALLL:
	case IR_CALLS: return (struct ir_operands){ OPERAND_REF, OPERAND_LITERAL };
	default: return (struct ir_operands){ OPERAND_REF, OPERAND_REF };
	}
}
