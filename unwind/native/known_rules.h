/* SPDX-License-Identifier: MIT */
/* known_rules: a cache of frame rules by address. Equal rules are kept once. */
#ifndef LJSPY_KNOWN_RULES_H
#define LJSPY_KNOWN_RULES_H

#include <stdint.h>

#include "unwind/elf/frame_rules.h"

/* The code generated at run time that rules depend on; empty if all of it lies in modules. */
struct made_code {
	uint64_t begin, end;
	uint64_t hash;
};

/* What the rules of the registers but pc and stack pointer come to. */
struct other_rules {
	unsigned int kept,
		lost;  /* enum register_set: values as in the frame, and values that nothing tells */
	uint8_t count; /* of the registers whose rules have to be followed, in numbers */
	uint8_t numbers[REGISTER_NUMBERS];
};

/*
 * Most rules find all in one place: the CFA is a register plus an offset, and what they recover is saved in
 * so many bytes below it.
 */
struct plain_rules {
	uint16_t length; /* 0: the rules are not of this kind */
	uint8_t cfa_register;
	uint64_t cfa_offset;
	uint16_t pc_below;                /* how far below the CFA the return address is */
	uint16_t below[REGISTER_NUMBERS]; /* the same of each of the numbers in other_rules */
};

struct known_rule; /* of one address */
struct kept_rules;

struct known_rules {
	unsigned int max; /* when it is full, all is forgotten */
	struct known_rule *first;
	struct kept_rules *kept; /* each of them once */
};

void known_rules_clear(struct known_rules *known);

/* The rule at pc; NULL if none is known. It lasts until it is forgotten. */
struct known_rule *known_rules_find(const struct known_rules *known, uint64_t pc);
void known_rules_forget(struct known_rules *known, struct known_rule *rule);

/* Remember rules, or with NULL that there are none. NULL when memory is short. */
const struct known_rule *known_rules_add(struct known_rules *known, uint64_t pc,
					 const struct frame_rules *rules, const struct made_code *made);

/* NULL: there are none. Valid up to the last operation, beyond which nothing is allocated. */
const struct frame_rules *known_rule_rules(const struct known_rule *rule);
const struct other_rules *known_rule_others(const struct known_rule *rule);
const struct plain_rules *known_rule_plain(const struct known_rule *rule);
const struct made_code *known_rule_made(const struct known_rule *rule);

/* Of rules with a caller. */
void other_rules_of(const struct frame_rules *rules, struct other_rules *ret_others);

/* The operation of a CFA that is a register plus an offset, DW_OP_bregx for all; false of any other CFA. */
bool frame_rules_cfa_by_register(const struct frame_rules *rules, struct frame_rule_op *ret_op);

/* The bytes of rules up to the last operation. */
size_t frame_rules_length(const struct frame_rules *rules);

#endif
