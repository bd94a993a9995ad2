/* SPDX-License-Identifier: MIT */
/*
 * frame_rules: how to find a frame's caller, as call frame information has it.
 *
 * One row of it, in a form that can be handed from one process to another. A
 * register's rule is one of DWARF's (version 5, 6.4.1); expressions keep
 * DWARF's own operations, with the CFA by DW_OP_call_frame_cfa.
 */
#ifndef LJSPY_FRAME_RULES_H
#define LJSPY_FRAME_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "unwind/elf/registers.h"

enum { FRAME_RULE_OPS_MAX = 64 };	/* of all expressions of one row */

enum frame_rule_kind {
	FRAME_RULE_UNKNOWN,	/* the caller's value is not to be had */
	FRAME_RULE_SAME,	/* as in the frame */
	FRAME_RULE_REGISTER,	/* as in the frame's register number */
	FRAME_RULE_VALUE,	/* what the expression gives */
	FRAME_RULE_SAVED,	/* in memory at the address that the expression gives */
	FRAME_RULE_SAVED_AT_CFA,	/* in memory as far from the CFA as the one operation's number */
};

struct frame_rule_op {
	uint64_t number, number2;	/* operands */
	uint8_t atom;			/* DW_OP_* */
};

struct frame_rule {
	uint8_t kind;		/* enum frame_rule_kind */
	uint8_t number;		/* of a register, below REGISTER_NUMBERS */
	uint8_t first, count;	/* the expression, among ops */
};

struct frame_rules {
	bool is_outermost;	/* there is no caller, and nothing below holds */
	uint8_t op_count;
	struct frame_rule cfa;	/* FRAME_RULE_VALUE */
	struct frame_rule registers[REGISTER_NUMBERS];
	struct frame_rule_op ops[FRAME_RULE_OPS_MAX];
};

/* libdw's row in this form; false if it is none of a frame, or does not fit. */
bool frame_rules_take(Dwarf_Frame *row, struct frame_rules *ret_rules);

/* What holds just after a call: the return address is on top of the stack. */
void frame_rules_of_call(struct frame_rules *ret_rules);

/* Whether what has come from elsewhere is within its bounds. */
bool frame_rules_valid(const struct frame_rules *rules);

#endif
