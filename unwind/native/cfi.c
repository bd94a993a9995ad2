/* SPDX-License-Identifier: MIT */
#include "unwind/native/cfi.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/elf/frame_rules.h"
#include "unwind/machine/signal_frame.h"
#include "unwind/native/frame_depth.h"
#include "unwind/native/known_rules.h"
#include "unwind/native/table_rules.h"

enum {
	KNOWN_MAX = 16384, /* cached addresses */
	OPERANDS_MAX = 16, /* depth of an expression's stack */
	WALK_INSTRUCTIONS_MAX = 1 << 16,
};

struct cfi {
	struct table_rules *tables;
	struct symbols *symbols;
	struct image *image;
	struct code_rules *code; /* NULL until first needed */
	struct known_rules known;
	struct known_rules by_depth;
	unsigned int instructions_left; /* see cfi_begin_walk() */
};

/* The data that an expression may refer to. */
struct state {
	const struct registers *frame;
	struct memory *stack;
	uint64_t cfa;
	bool lacks_register; /* an expression used an unknown register */
};

/*---- Answers ----*/

struct cfi *cfi_new(struct image *image, struct symbols *symbols)
{
	struct cfi *cfi = calloc(1, sizeof(*cfi));

	if (!cfi)
		return NULL;
	cfi->known.max = cfi->by_depth.max = KNOWN_MAX;
	cfi->symbols = symbols;
	cfi->image = image;
	cfi->tables = table_rules_new(image);
	if (!cfi->tables) {
		free(cfi);
		return NULL;
	}
	return cfi;
}

void cfi_reset(struct cfi *cfi)
{
	known_rules_clear(&cfi->known);
	known_rules_clear(&cfi->by_depth);
	if (cfi->code)
		code_rules_reset(cfi->code);
}

void cfi_free(struct cfi *cfi)
{
	if (!cfi)
		return;
	cfi_reset(cfi);
	table_rules_free(cfi->tables);
	code_rules_free(cfi->code);
	free(cfi);
}

static bool work_out(struct cfi *cfi, uint64_t pc, struct frame_rules *ret_rules)
{
	switch (table_rules_find(cfi->tables, pc, ret_rules)) {
	case TABLE_RULES_FOUND: return true;
	case TABLE_RULES_NONE: return symbols_rules(cfi->symbols, pc, ret_rules);
	case TABLE_RULES_BAD: break;
	}
	return false;
}

/* The rules at pc, from the cache or worked out now. NULL if there are none. */
static const struct known_rule *find_rules(struct cfi *cfi, uint64_t pc)
{
	const struct known_rule *known = known_rules_find(&cfi->known, pc);
	const struct made_code none = { 0 };
	struct frame_rules rules;

	if (!known)
		known = known_rules_add(&cfi->known, pc, work_out(cfi, pc, &rules) ? &rules : NULL, &none);
	return known && known_rule_rules(known) ? known : NULL;
}

/*---- Expressions ----*/

static bool read_register(struct state *state, uint64_t number, uint64_t *ret_value)
{
	if (number < REGISTER_NUMBERS && registers_get(state->frame, (int)number, ret_value))
		return true;
	state->lacks_register = true;
	return false;
}

/* The value pushed by an operation without operands. False for other operations and unknown values. */
static bool push(struct state *state, const struct frame_rule_op *op, uint64_t *ret_value)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		*ret_value = op->atom - DW_OP_lit0;
		return true;
	}
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		if (!read_register(state, op->atom - DW_OP_breg0, ret_value))
			return false;
		*ret_value += op->number;
		return true;
	}
	switch (op->atom) {
	case DW_OP_bregx:
		if (!read_register(state, op->number, ret_value))
			return false;
		*ret_value += op->number2;
		return true;
	case DW_OP_call_frame_cfa: *ret_value = state->cfa; return true;
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_constu:
	case DW_OP_consts: *ret_value = op->number; return true;
	default: return false;
	}
}

/* Operations on the top operand. */
static bool change(struct state *state, const struct frame_rule_op *op, uint64_t *top)
{
	if (op->atom == DW_OP_plus_uconst) {
		*top += op->number;
		return true;
	}
	return op->atom == DW_OP_deref && memory_read(state->stack, *top, top, sizeof(*top)) == MEMORY_OK;
}

/* Operations on the top two operands, as PLT entries use them. */
static bool combine(uint8_t atom, uint64_t left, uint64_t right, uint64_t *ret_value)
{
	switch (atom) {
	case DW_OP_plus: *ret_value = left + right; return true;
	case DW_OP_minus: *ret_value = left - right; return true;
	case DW_OP_and: *ret_value = left & right; return true;
	case DW_OP_shl: *ret_value = right < 64 ? left << right : 0; return true;
	case DW_OP_ge: *ret_value = (int64_t)left >= (int64_t)right; return true;
	default: return false;
	}
}

static bool evaluate(struct state *state, const struct frame_rules *rules, const struct frame_rule *rule,
		     uint64_t *ret_value)
{
	const struct frame_rule_op *ops = rules->ops + rule->first;
	uint64_t operands[OPERANDS_MAX], value;
	size_t depth = 0;

	for (size_t i = 0; i < rule->count; i++) {
		if (push(state, &ops[i], &value)) {
			if (depth == OPERANDS_MAX)
				return false;
			operands[depth++] = value;
		} else if (depth >= 2 &&
			   combine(ops[i].atom, operands[depth - 2], operands[depth - 1], &value)) {
			operands[--depth - 1] = value;
		} else if (depth == 0 || !change(state, &ops[i], &operands[depth - 1])) {
			return false;
		}
	}
	if (depth == 0)
		return false;
	*ret_value = operands[depth - 1];
	return true;
}

/*---- Rules ----*/

static bool find_cfa(struct state *state, const struct frame_rules *rules)
{
	return evaluate(state, rules, &rules->cfa, &state->cfa);
}

/* The word at the address that the rule's expression gives. */
static bool read_at(struct state *state, const struct frame_rules *rules, const struct frame_rule *rule,
		    uint64_t *ret_value)
{
	uint64_t address;

	return evaluate(state, rules, rule, &address) && memory_u64(state->stack, address, ret_value);
}

/* Recover the caller's value of a register by its rule. */
static bool recover(struct state *state, const struct frame_rules *rules, int number, uint64_t *ret_value)
{
	const struct frame_rule *rule = &rules->registers[number];

	switch ((enum frame_rule_kind)rule->kind) {
	case FRAME_RULE_UNKNOWN: return false;
	case FRAME_RULE_SAME: return read_register(state, (uint64_t)number, ret_value);
	case FRAME_RULE_REGISTER: return read_register(state, rule->number, ret_value);
	case FRAME_RULE_VALUE:
		/* The stack pointer's rule is that of the CFA. */
		if (rule->first == rules->cfa.first && rule->count == rules->cfa.count) {
			*ret_value = state->cfa;
			return true;
		}
		return evaluate(state, rules, rule, ret_value);
	case FRAME_RULE_SAVED: return read_at(state, rules, rule, ret_value);
	case FRAME_RULE_SAVED_AT_CFA:
		return memory_u64(state->stack, state->cfa + rules->ops[rule->first].number, ret_value);
	}
	return false;
}

/* A register without a rule keeps the frame's value. */
static struct registers begin_caller(const struct registers *frame, const struct other_rules *others)
{
	struct registers caller = *frame;

	caller.flags = 0;
	caller.call_number = UINT64_MAX;
	caller.unknown = (frame->unknown & others->kept) | others->lost;
	return caller;
}

/* The caller's registers except pc and stack pointer. */
static void recover_others(struct state *state, const struct frame_rules *rules,
			   const struct other_rules *others, struct registers *caller)
{
	for (unsigned int i = 0; i < others->count; i++) {
		int number = others->numbers[i];

		if (!recover(state, rules, number, registers_locate(caller, number)))
			caller->unknown |= registers_set_of(number);
	}
}

static enum cfi_status apply(const struct frame_rules *rules, const struct other_rules *others,
			     const struct registers *frame, struct memory *stack,
			     struct registers *ret_caller)
{
	struct registers caller = begin_caller(frame, others);
	struct state state = { .frame = frame, .stack = stack };

	if (rules->is_outermost) {
		caller.pc = 0;
		*ret_caller = caller;
		return CFI_CALLER;
	}
	if (!find_cfa(&state, rules) || !recover(&state, rules, REGISTER_NUMBER_PC, &caller.pc) ||
	    !recover(&state, rules, REGISTER_NUMBER_SP, &caller.sp))
		return state.lacks_register ? CFI_REGISTER_UNKNOWN : CFI_NONE;
	caller.pc = registers_code_address(frame, caller.pc);
	recover_others(&state, rules, others, &caller);
	*ret_caller = caller;
	return CFI_CALLER;
}

/* The same by plain rules. False if the rules are not plain, or one by one may tell more. */
static bool apply_plain(const struct plain_rules *plain, const struct other_rules *others,
			const struct registers *frame, struct memory *stack, struct registers *ret_caller)
{
	struct registers caller;
	const uint8_t *saved, *saved_end;
	uint64_t cfa;

	if (!plain->length || !registers_get(frame, plain->cfa_register, &cfa))
		return false;
	cfa += plain->cfa_offset;
	saved = memory_view(stack, cfa - plain->length, plain->length);
	if (!saved)
		return false;
	saved_end = saved + plain->length;
	caller = begin_caller(frame, others);
	for (unsigned int i = 0; i < others->count; i++)
		memcpy(registers_locate(&caller, others->numbers[i]), saved_end - plain->below[i],
		       sizeof(uint64_t));
	memcpy(&caller.pc, saved_end - plain->pc_below, sizeof(caller.pc));
	caller.pc = registers_code_address(frame, caller.pc);
	caller.sp = cfa;
	*ret_caller = caller;
	return true;
}

static enum cfi_status apply_known(const struct known_rule *known, const struct registers *frame,
				   struct memory *stack, struct registers *ret_caller)
{
	const struct other_rules *others = known_rule_others(known);

	return apply_plain(known_rule_plain(known), others, frame, stack, ret_caller)
		       ? CFI_CALLER
		       : apply(known_rule_rules(known), others, frame, stack, ret_caller);
}

enum cfi_status cfi_step(struct cfi *cfi, uint64_t pc, const struct registers *frame, struct memory *stack,
			 struct registers *ret_caller)
{
	const struct known_rule *known = find_rules(cfi, pc);

	return known ? apply_known(known, frame, stack, ret_caller) : CFI_NONE;
}

static bool caller_sp(const struct frame_rules *rules, const struct registers *frame, struct memory *stack,
		      uint64_t *ret_sp)
{
	struct state state = { .frame = frame, .stack = stack };

	return !rules->is_outermost && find_cfa(&state, rules) &&
	       recover(&state, rules, REGISTER_NUMBER_SP, ret_sp);
}

bool cfi_caller_sp(struct cfi *cfi, uint64_t pc, const struct registers *frame, struct memory *stack,
		   uint64_t *ret_sp)
{
	const struct known_rule *known = find_rules(cfi, pc);

	return known && caller_sp(known_rule_rules(known), frame, stack, ret_sp);
}

static struct code_rules *code_of(struct cfi *cfi)
{
	if (!cfi->code)
		cfi->code = code_rules_new(cfi->image);
	return cfi->code;
}

static bool find_code_rules(struct cfi *cfi, const struct registers *frame, struct memory *snapshot,
			    struct frame_rules *ret_rules)
{
	return code_of(cfi) && code_rules_find(cfi->code, snapshot, frame->pc, ret_rules);
}

bool cfi_caller_sp_by_code(struct cfi *cfi, const struct registers *frame, struct memory *snapshot,
			   uint64_t *ret_sp)
{
	struct frame_rules rules;

	return find_code_rules(cfi, frame, snapshot, &rules) && caller_sp(&rules, frame, snapshot, ret_sp);
}

enum cfi_status cfi_step_by_code(struct cfi *cfi, const struct registers *frame, struct memory *snapshot,
				 struct registers *ret_caller)
{
	struct registers caller;
	struct frame_rules rules;
	struct other_rules others;
	enum cfi_status status;

	if (!find_code_rules(cfi, frame, snapshot, &rules))
		return CFI_NONE;
	other_rules_of(&rules, &others);
	status = apply(&rules, &others, frame, snapshot, &caller);
	if (status != CFI_CALLER)
		return status;
	if (!code_rules_follows_call(cfi->code, snapshot, caller.pc))
		return CFI_NONE;
	*ret_caller = caller;
	return CFI_CALLER;
}

/*---- By the code before the pc ----*/

/*
 * Is the CFA at an address that of a function's beginning, where nothing but its caller's call has moved the
 * stack?
 */
static bool is_entry(struct cfi *cfi, uint64_t pc)
{
	const struct known_rule *known = find_rules(cfi, pc);
	struct frame_rule_op op;

	return known && frame_rules_cfa_by_register(known_rule_rules(known), &op) &&
	       op.number == REGISTER_NUMBER_SP && op.number2 == CALL_PUSHES;
}

/*
 * Have the CFA found by the stack pointer. Not FRAME_DEPTH_FOUND if the code does not tell, or contradicts
 * the rules. A function's part elsewhere begins with its frame.
 */
static enum frame_depth_status work_out_by_depth(struct cfi *cfi, uint64_t pc, struct frame_rules *rules)
{
	struct frame_question question = { .pc = pc };
	enum frame_depth_status status;
	struct frame_rule_op op;
	struct frame_depth depth;

	if (!frame_rules_cfa_by_register(rules, &op) || op.number == REGISTER_NUMBER_SP ||
	    !image_function(cfi->image, pc, &question.begin, &question.end) || !is_entry(cfi, question.begin))
		return FRAME_DEPTH_NONE;
	question.number = (int)op.number;
	status = frame_depth_find(cfi->image, &question, &cfi->instructions_left, &depth);
	if (status != FRAME_DEPTH_FOUND)
		return status;
	if ((uint64_t)depth.pointer + op.number2 != CALL_PUSHES)
		return FRAME_DEPTH_NONE;
	op.number = REGISTER_NUMBER_SP;
	op.number2 = CALL_PUSHES - (uint64_t)depth.sp;
	rules->ops[rules->cfa.first] = op;
	return FRAME_DEPTH_FOUND;
}

static const struct known_rule *find_rules_by_depth(struct cfi *cfi, uint64_t pc)
{
	const struct known_rule *known = known_rules_find(&cfi->by_depth, pc);
	const struct known_rule *listed = known ? NULL : find_rules(cfi, pc);
	const struct made_code none = { 0 };
	enum frame_depth_status status;
	struct frame_rules rules;

	if (listed) {
		memcpy(&rules, known_rule_rules(listed), frame_rules_length(known_rule_rules(listed)));
		status = work_out_by_depth(cfi, pc, &rules);
		if (status != FRAME_DEPTH_UNDECIDED)
			known = known_rules_add(&cfi->by_depth, pc,
						status == FRAME_DEPTH_FOUND ? &rules : NULL, &none);
	}
	return known && known_rule_rules(known) ? known : NULL;
}

void cfi_begin_walk(struct cfi *cfi)
{
	cfi->instructions_left = WALK_INSTRUCTIONS_MAX;
}

enum cfi_status cfi_step_by_depth(struct cfi *cfi, uint64_t pc, const struct registers *frame,
				  struct memory *stack, struct registers *ret_caller)
{
	const struct known_rule *known = find_rules_by_depth(cfi, pc);
	struct registers caller;
	uint64_t begin, end;

	if (!known || !code_of(cfi) || !image_function(cfi->image, pc, &begin, &end) ||
	    apply_known(known, frame, stack, &caller) != CFI_CALLER ||
	    !(code_rules_follows_call_of(cfi->code, stack, caller.pc, begin) ||
	      signal_frame_is_at(image_text(cfi->image), caller.pc)))
		return CFI_REGISTER_UNKNOWN;
	*ret_caller = caller;
	return CFI_CALLER;
}

enum code_leads cfi_lead(struct cfi *cfi, uint64_t from, uint64_t to)
{
	return code_of(cfi) ? code_rules_lead(cfi->code, from, to) : CODE_LEADS_PERHAPS;
}
