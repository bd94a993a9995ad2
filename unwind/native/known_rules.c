/* SPDX-License-Identifier: MIT */
#include "unwind/native/known_rules.h"

#include <dwarf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "memory/word_hash.h"

/* All registers that functions keep take less, but for those of large frames on arm64. */
enum { PLAIN_BYTES_MAX = 512 };

/* What is kept of rules: a program has some hundred of them, and thousands of addresses. */
struct kept_rules {
	UT_hash_handle hh;
	uint32_t users; /* addresses */
	struct other_rules others;
	struct plain_rules plain;
	/* The key: all that follows. */
	struct made_code made;
	uint64_t has_rules;
	struct frame_rules rules; /* allocated up to its last operation */
};

struct known_rule {
	uint64_t pc;
	struct kept_rules *kept;
	UT_hash_handle hh;
};

static const void *key_of(const struct kept_rules *kept)
{
	return &kept->made;
}

static size_t key_length(const struct kept_rules *kept)
{
	const size_t length = kept->has_rules ? frame_rules_length(&kept->rules)
					      : offsetof(struct frame_rules, ops);

	return offsetof(struct kept_rules, rules) - offsetof(struct kept_rules, made) + length;
}

/* Field by field, as what lies between them differs among equal rules. NULL when memory is short. */
static struct kept_rules *new_kept(const struct frame_rules *rules, const struct made_code *made)
{
	const size_t length = rules ? frame_rules_length(rules) : offsetof(struct frame_rules, ops);
	struct kept_rules *kept = calloc(1, offsetof(struct kept_rules, rules) + length);

	if (!kept)
		return NULL;
	kept->made = *made;
	kept->has_rules = rules != NULL;
	if (!rules)
		return kept;
	memcpy(&kept->rules, rules, offsetof(struct frame_rules, registers) + sizeof(rules->registers));
	for (size_t i = 0; i < rules->op_count; i++) {
		kept->rules.ops[i].number = rules->ops[i].number;
		kept->rules.ops[i].number2 = rules->ops[i].number2;
		kept->rules.ops[i].atom = rules->ops[i].atom;
	}
	return kept;
}

/* How far below the CFA the rule has a word saved, if not too far. *length grows to the furthest. */
static bool note_saved(const struct frame_rules *rules, int number, uint16_t *ret_below, uint16_t *length)
{
	const struct frame_rule *rule = &rules->registers[number];
	uint64_t below;

	if (rule->kind != FRAME_RULE_SAVED_AT_CFA)
		return false;
	below = -rules->ops[rule->first].number;
	if (below < sizeof(uint64_t) || below > PLAIN_BYTES_MAX)
		return false;
	*ret_below = (uint16_t)below;
	if (below > *length)
		*length = (uint16_t)below;
	return true;
}

/* Sets *ret_plain only if the rules are plain. */
static void note_plain(const struct frame_rules *rules, const struct other_rules *others,
		       struct plain_rules *ret_plain)
{
	const struct frame_rule *sp = &rules->registers[REGISTER_NUMBER_SP];
	struct plain_rules plain = { .length = 0 };
	struct frame_rule_op cfa;

	if (!frame_rules_cfa_by_register(rules, &cfa) || sp->kind != FRAME_RULE_VALUE ||
	    sp->first != rules->cfa.first || sp->count != rules->cfa.count ||
	    !note_saved(rules, REGISTER_NUMBER_PC, &plain.pc_below, &plain.length))
		return;
	for (unsigned int i = 0; i < others->count; i++)
		if (!note_saved(rules, others->numbers[i], &plain.below[i], &plain.length))
			return;
	plain.cfa_register = (uint8_t)cfa.number;
	plain.cfa_offset = cfa.number2;
	*ret_plain = plain;
}

/* These rules, kept once. NULL when memory is short. */
static struct kept_rules *keep(struct known_rules *known, const struct frame_rules *rules,
			       const struct made_code *made)
{
	struct kept_rules *kept = new_kept(rules, made), *same;

	if (!kept)
		return NULL;
	HASH_FIND(hh, known->kept, key_of(kept), key_length(kept), same);
	if (same) {
		free(kept);
		return same;
	}
	if (rules) {
		other_rules_of(rules, &kept->others);
		note_plain(rules, &kept->others, &kept->plain);
	}
	HASH_ADD_KEYPTR(hh, known->kept, key_of(kept), key_length(kept), kept);
	if (hash_added(&kept->hh))
		return kept;
	free(kept);
	return NULL;
}

static void drop_unused(struct known_rules *known, struct kept_rules *kept)
{
	if (kept->users)
		return;
	HASH_DEL(known->kept, kept);
	free(kept);
}

void known_rules_clear(struct known_rules *known)
{
	struct known_rule *rule, *next;

	HASH_ITER(hh, known->first, rule, next) {
		known_rules_forget(known, rule);
	}
}

struct known_rule *known_rules_find(const struct known_rules *known, uint64_t pc)
{
	struct known_rule *rule;

	HASH_FIND(hh, known->first, &pc, sizeof(pc), rule);
	return rule;
}

void known_rules_forget(struct known_rules *known, struct known_rule *rule)
{
	HASH_DEL(known->first, rule);
	rule->kept->users--;
	drop_unused(known, rule->kept);
	free(rule);
}

/* Rules that are kept for this address, too. NULL when memory is short. */
static struct known_rule *add(struct known_rules *known, uint64_t pc, struct kept_rules *kept)
{
	struct known_rule *rule = calloc(1, sizeof(*rule));

	if (!rule)
		return NULL;
	rule->pc = pc;
	rule->kept = kept;
	HASH_ADD(hh, known->first, pc, sizeof(rule->pc), rule);
	if (!hash_added(&rule->hh)) {
		free(rule);
		return NULL;
	}
	kept->users++;
	return rule;
}

const struct known_rule *known_rules_add(struct known_rules *known, uint64_t pc,
					 const struct frame_rules *rules, const struct made_code *made)
{
	struct known_rule *rule;
	struct kept_rules *kept;

	if (HASH_COUNT(known->first) >= known->max)
		known_rules_clear(known);
	kept = keep(known, rules, made);
	rule = kept ? add(known, pc, kept) : NULL;
	if (kept)
		drop_unused(known, kept);
	return rule;
}

const struct frame_rules *known_rule_rules(const struct known_rule *rule)
{
	return rule->kept->has_rules ? &rule->kept->rules : NULL;
}

const struct other_rules *known_rule_others(const struct known_rule *rule)
{
	return &rule->kept->others;
}

const struct plain_rules *known_rule_plain(const struct known_rule *rule)
{
	return &rule->kept->plain;
}

const struct made_code *known_rule_made(const struct known_rule *rule)
{
	return &rule->kept->made;
}

void other_rules_of(const struct frame_rules *rules, struct other_rules *ret_others)
{
	struct other_rules others = { .count = 0 };

	for (int number = 0; number < REGISTER_NUMBER_PC; number++) {
		if (number == REGISTER_NUMBER_SP)
			continue;
		if (rules->registers[number].kind == FRAME_RULE_SAME)
			others.kept |= registers_set_of(number);
		else if (rules->registers[number].kind == FRAME_RULE_UNKNOWN)
			others.lost |= registers_set_of(number);
		else
			others.numbers[others.count++] = (uint8_t)number;
	}
	*ret_others = others;
}

bool frame_rules_cfa_by_register(const struct frame_rules *rules, struct frame_rule_op *ret_op)
{
	const struct frame_rule_op *op = &rules->ops[rules->cfa.first];

	if (rules->is_outermost || rules->cfa.count != 1)
		return false;
	if (op->atom == DW_OP_bregx && op->number < REGISTER_NUMBERS)
		*ret_op = *op;
	else if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		*ret_op = (struct frame_rule_op){ .number = op->atom - DW_OP_breg0, .number2 = op->number };
	else
		return false;
	ret_op->atom = DW_OP_bregx;
	return ret_op->number < REGISTER_NUMBERS;
}

size_t frame_rules_length(const struct frame_rules *rules)
{
	return offsetof(struct frame_rules, ops) + rules->op_count * sizeof(*rules->ops);
}
