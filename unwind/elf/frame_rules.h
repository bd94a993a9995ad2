/* SPDX-License-Identifier: MIT */
/*
 * frame_rules: how to find a frame's caller, from call frame information.
 *
 * This is one row of it, in a form that one process can send to another. A
 * register's rule is one of DWARF's (version 5, 6.4.1). Expressions keep DWARF's
 * own operations; DW_OP_call_frame_cfa stands for the CFA.
 */
#ifndef LJSPY_FRAME_RULES_H
#define LJSPY_FRAME_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "unwind/elf/registers.h"

enum { FRAME_RULE_OPS_MAX = 64 }; /* of all expressions of one row */

enum frame_rule_kind {
	FRAME_RULE_UNKNOWN,      /* the caller's value is lost */
	FRAME_RULE_SAME,         /* as in the frame */
	FRAME_RULE_REGISTER,     /* as in the frame's register of that number */
	FRAME_RULE_VALUE,        /* the result of the expression */
	FRAME_RULE_SAVED,        /* in memory, at the address that the expression gives */
	FRAME_RULE_SAVED_AT_CFA, /* in memory, at the CFA plus the number of the only operation */
};

struct frame_rule_op {
	uint64_t number, number2; /* operands */
	uint8_t atom;             /* DW_OP_* */
};

struct frame_rule {
	uint8_t kind;         /* enum frame_rule_kind */
	uint8_t number;       /* FRAME_RULE_REGISTER: of the register, below REGISTER_NUMBERS */
	uint8_t first, count; /* the expression, in ops */
};

struct frame_rules {
	bool is_outermost; /* there is no caller; the fields below mean nothing */
	uint8_t op_count;
	struct frame_rule cfa; /* FRAME_RULE_VALUE */
	struct frame_rule registers[REGISTER_NUMBERS];
	struct frame_rule_op ops[FRAME_RULE_OPS_MAX];
};

/* Convert libdw's row; false if it is not a frame's, or does not fit. The caller keeps row. */
bool frame_rules_take(Dwarf_Frame *row, struct frame_rules *ret_rules);

/* Take the rule of the pc from the rule of the return address. */
void frame_rules_return(struct frame_rules *rules);

/* The rules just after a call: the return address is on top of the stack, or in the link register. */
void frame_rules_of_call(struct frame_rules *ret_rules);

/* Are rules from another process within their bounds? */
bool frame_rules_valid(const struct frame_rules *rules);

#endif
