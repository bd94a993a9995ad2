/* SPDX-License-Identifier: MIT */
#include "unwind/elf/frame_rules.h"

#include <dwarf.h>
#include <string.h>

static bool take_expression(const Dwarf_Op *ops, size_t count, struct frame_rules *rules,
			    struct frame_rule *rule)
{
	if (count == 0 || count > (size_t)FRAME_RULE_OPS_MAX - rules->op_count)
		return false;
	rule->first = rules->op_count;
	rule->count = (uint8_t)count;
	for (size_t i = 0; i < count; i++)
		rules->ops[rules->op_count++] = (struct frame_rule_op){
			.atom = ops[i].atom,
			.number = ops[i].number,
			.number2 = ops[i].number2,
		};
	return true;
}

static bool take_register(Dwarf_Frame *row, int number, struct frame_rules *rules)
{
	struct frame_rule *rule = &rules->registers[number];
	Dwarf_Op held[3], *ops;
	size_t count;

	if (dwarf_frame_register(row, number, held, &ops, &count) != 0)
		return false;
	if (count == 0) {
		rule->kind = ops && number != REGISTER_NUMBER_LIBDW_MISSES ? FRAME_RULE_UNKNOWN
									   : FRAME_RULE_SAME;
		return true;
	}
	if ((ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) || ops[0].atom == DW_OP_regx) {
		uint64_t in = ops[0].atom == DW_OP_regx ? ops[0].number
							: (uint64_t)(ops[0].atom - DW_OP_reg0);

		rule->kind = in < REGISTER_NUMBERS ? FRAME_RULE_REGISTER : FRAME_RULE_UNKNOWN;
		rule->number = in < REGISTER_NUMBERS ? (uint8_t)in : 0;
		return true;
	}
	rule->kind = ops[count - 1].atom == DW_OP_stack_value ? FRAME_RULE_VALUE : FRAME_RULE_SAVED;
	return take_expression(ops, rule->kind == FRAME_RULE_VALUE ? count - 1 : count, rules, rule);
}

bool frame_rules_take(Dwarf_Frame *row, struct frame_rules *ret_rules)
{
	struct frame_rules rules;
	Dwarf_Op *ops;
	size_t count;

	memset(&rules, 0, sizeof(rules));
	if (dwarf_frame_info(row, NULL, NULL, NULL) != REGISTER_NUMBER_RETURN)
		return false;
	for (int number = 0; number < REGISTER_COLUMNS; number++)
		if (!take_register(row, number, &rules))
			return false;
	frame_rules_return(&rules);
	rules.is_outermost = rules.registers[REGISTER_NUMBER_PC].kind == FRAME_RULE_UNKNOWN;
	rules.cfa.kind = FRAME_RULE_VALUE;
	if (!rules.is_outermost &&
	    (dwarf_frame_cfa(row, &ops, &count) != 0 || !take_expression(ops, count, &rules, &rules.cfa)))
		return false;
	*ret_rules = rules;
	return true;
}

void frame_rules_return(struct frame_rules *rules)
{
	struct frame_rule *pc = &rules->registers[REGISTER_NUMBER_PC];

	*pc = rules->registers[REGISTER_NUMBER_RETURN];
	/* On a machine with a link register, the return address is still in it. */
	if (REGISTER_NUMBER_RETURN != REGISTER_NUMBER_PC && pc->kind == FRAME_RULE_SAME)
		*pc = (struct frame_rule){ .kind = FRAME_RULE_REGISTER, .number = REGISTER_NUMBER_RETURN };
}

void frame_rules_of_call(struct frame_rules *ret_rules)
{
	const bool is_pushed = REGISTER_NUMBER_RETURN == REGISTER_NUMBER_PC;
	const struct frame_rule_op ops[] = {
		{ .atom = DW_OP_bregx,
		  .number = REGISTER_NUMBER_SP,
		  .number2 = is_pushed ? sizeof(uint64_t) : 0 },
		{ .atom = DW_OP_bregx, .number = REGISTER_NUMBER_SP },
	};

	memset(ret_rules, 0, sizeof(*ret_rules));
	memcpy(ret_rules->ops, ops, sizeof(ops));
	ret_rules->op_count = sizeof(ops) / sizeof(ops[0]);
	ret_rules->cfa = (struct frame_rule){ .kind = FRAME_RULE_VALUE, .count = 1 };
	for (int number = 0; number < REGISTER_NUMBERS; number++)
		ret_rules->registers[number].kind = FRAME_RULE_SAME;
	ret_rules->registers[REGISTER_NUMBER_SP] = ret_rules->cfa;
	if (is_pushed)
		ret_rules->registers[REGISTER_NUMBER_PC] = (struct frame_rule){ .kind = FRAME_RULE_SAVED,
										.first = 1,
										.count = 1 };
	else
		frame_rules_return(ret_rules);
}

static bool is_valid(const struct frame_rules *rules, const struct frame_rule *rule)
{
	return rule->kind <= FRAME_RULE_SAVED_AT_CFA && rule->number < REGISTER_NUMBERS &&
	       rule->first <= rules->op_count && rule->count <= rules->op_count - rule->first &&
	       (rule->kind != FRAME_RULE_SAVED_AT_CFA || rule->count == 1);
}

bool frame_rules_valid(const struct frame_rules *rules)
{
	if (rules->op_count > FRAME_RULE_OPS_MAX || !is_valid(rules, &rules->cfa))
		return false;
	for (int number = 0; number < REGISTER_NUMBERS; number++)
		if (!is_valid(rules, &rules->registers[number]))
			return false;
	return true;
}
