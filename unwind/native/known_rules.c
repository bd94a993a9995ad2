/* SPDX-License-Identifier: MIT */
#include "unwind/native/known_rules.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "memory/word_hash.h"

struct known_rule {
	uint64_t pc;
	UT_hash_handle hh;
	struct made_code made;
	bool has_rules;
	struct other_rules others;
	struct frame_rules rules; /* allocated up to its last operation */
};

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
	free(rule);
}

const struct known_rule *known_rules_add(struct known_rules *known, uint64_t pc,
					 const struct frame_rules *rules, const struct made_code *made)
{
	size_t length = rules ? frame_rules_length(rules) : offsetof(struct frame_rules, ops);
	struct known_rule *rule = calloc(1, offsetof(struct known_rule, rules) + length);

	if (!rule)
		return NULL;
	rule->pc = pc;
	rule->made = *made;
	rule->has_rules = rules != NULL;
	if (rules) {
		memcpy(&rule->rules, rules, length);
		other_rules_of(rules, &rule->others);
	}
	if (HASH_COUNT(known->first) >= known->max)
		known_rules_clear(known);
	HASH_ADD(hh, known->first, pc, sizeof(rule->pc), rule);
	if (!hash_added(&rule->hh)) {
		free(rule);
		return NULL;
	}
	return rule;
}

const struct frame_rules *known_rule_rules(const struct known_rule *rule)
{
	return rule->has_rules ? &rule->rules : NULL;
}

const struct other_rules *known_rule_others(const struct known_rule *rule)
{
	return &rule->others;
}

const struct made_code *known_rule_made(const struct known_rule *rule)
{
	return &rule->made;
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

size_t frame_rules_length(const struct frame_rules *rules)
{
	return offsetof(struct frame_rules, ops) + rules->op_count * sizeof(*rules->ops);
}
