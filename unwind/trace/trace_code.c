/* SPDX-License-Identifier: MIT */
/* What is the same for every machine: bounds by snapshots, and the best assignment. */
#include "unwind/trace/trace_code.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/lua/luajit.h"
#include "unwind/trace/trace_block.h"
#include "unwind/trace/trace_code_parts.h"

enum {
	SPILL_SIZE = 4, /* sps_scale() */
	CELLS_MAX = 1 << 23,
	/* How well a machine instruction fits an IR instruction. */
	FIT_NEVER = -12,
	FIT_UNLIKELY = -3,
	FIT_NO_CODE = -1,
	FIT_AFTER_CALL = -2, /* same IR instruction as the call or exit before it */
	FIT_TOGETHER = 2,    /* same IR instruction as the one before it, if that is likely */
	FIT_PLAUSIBLE = 2,
	FIT_RESULT = 4,
	FIT_GOOD = 5,
	FIT_OPERAND = 8,
};

static void mark_targets(struct trace_block_code *block)
{
	for (size_t i = 0; i < block->count; i++) {
		uint64_t offset = block->code[i].target - block->trace->mcode;

		for (size_t k = 0; offset < block->trace->szmcode && k < block->count; k++)
			if (block->code[k].offset == offset)
				block->code[k].jumped_to = true;
	}
}

/*---- Bounds ----*/

/*
 * With SnapShot.mcofs, the start of each snapshot's code is known. The snapshots of
 * a side trace's inherited slots have no code, and their offset is the code's end.
 */
static void bound_by_mcofs(struct trace_block_code *block, uint32_t snapshots)
{
	size_t end = block->count;

	for (uint32_t number = snapshots; number-- > 0 && end > 0;) {
		struct trace_snapshot snapshot;

		if (!trace_snapshot(block->trace, block->layout, number, &snapshot))
			continue;
		while (end > 0 && (number == 0 || block->code[end - 1].offset >= snapshot.mcofs)) {
			end--;
			block->code[end].low_snapshot = number;
			block->code[end].high_snapshot = number;
		}
	}
}

/* Without mcofs, code between two exits belongs to one of their snapshots, or to one between these. */
static void bound_by_exits(struct trace_block_code *block, uint32_t snapshots,
			   const struct trace_exits *exits)
{
	uint32_t low = 0;
	size_t begin = 0;

	/* Skip the head: its check of the stack's size uses an exit of the parent. */
	for (size_t i = trace_code_head(block); i < block->count; i++) {
		int exit = block->code[i].exits ? exits->number(exits->context, block->code[i].target) : -1;

		if (exit < 0 || (uint32_t)exit < low || (uint32_t)exit >= snapshots)
			continue;
		for (; begin <= i; begin++) {
			block->code[begin].low_snapshot = low;
			block->code[begin].high_snapshot = (uint32_t)exit;
		}
		low = (uint32_t)exit;
		block->code[i].low_snapshot = low;
	}
	for (; begin < block->count; begin++) {
		block->code[begin].low_snapshot = low;
		block->code[begin].high_snapshot = snapshots - 1;
	}
}

static bool bound(struct trace_block_code *block, const struct trace_exits *exits)
{
	uint32_t snapshots = trace_snapshot_count(block->trace, block->layout);
	uint32_t nins = TRACE_REF_BASE + block->ir_count;

	if (snapshots == 0)
		return false;
	if (block->layout->SnapShot_mcofs != LAYOUT_ABSENT)
		bound_by_mcofs(block, snapshots);
	else
		bound_by_exits(block, snapshots, exits);
	for (size_t i = 0; i < block->count; i++) {
		struct machine_instruction *machine = &block->code[i];
		struct trace_snapshot low = { 0 }, high = { .ref = nins };

		if (!trace_snapshot(block->trace, block->layout, machine->low_snapshot, &low))
			return false;
		if (machine->high_snapshot + 1 < snapshots &&
		    !trace_snapshot(block->trace, block->layout, machine->high_snapshot + 1, &high))
			return false;
		machine->low = machine->low_snapshot == 0 ? TRACE_REF_BASE : low.ref;
		/* The tail's check of the stack's size uses the last snapshot's exit, after all IR. */
		if (machine->low == nins)
			machine->low--;
		machine->high = high.ref;
		if (machine->high <= machine->low)
			machine->high = machine->low + 1;
		if (machine->low < TRACE_REF_BASE || machine->high > nins)
			return false;
	}
	return true;
}

/*---- Fit ----*/

static bool has_result(const struct trace_instruction *ins)
{
	return ins->reg < TRACE_REGISTERS;
}

static bool may_call(const struct trace_instruction *ins)
{
	switch ((int)ins->op) {
	case IR_CALLN:
	case IR_CALLA:
	case IR_CALLL:
	case IR_CALLS:
	case IR_CALLXS:
	case IR_SNEW:
	case IR_XSNEW:
	case IR_TNEW:
	case IR_TDUP:
	case IR_CNEW:
	case IR_CNEWI:
	case IR_BUFPUT:
	case IR_BUFSTR:
	case IR_TOSTR:
	case IR_STRTO:
	case IR_NEWREF:
	case IR_FPMATH:
	case IR_POW:
	case IR_MOD:
	case IR_OBAR:
	case IR_GCSTEP:
	case IR_ATAN2:
	case IR_LDEXP:
	case IR_ALEN:
	case IR_BASE:
	case IR_LOOP: return true;
	case IR_DIV: /* of 64-bit integers */ return ins->type != IRT_NUM;
	default: return false;
	}
}

static bool is_store(const struct trace_instruction *ins)
{
	return ins->op == IR_ASTORE || ins->op == IR_HSTORE || ins->op == IR_USTORE || ins->op == IR_FSTORE ||
	       ins->op == IR_XSTORE;
}

static bool is_load(const struct trace_instruction *ins)
{
	return ins->op >= IR_ALOAD && ins->op <= IR_ALEN;
}

/* What this IR operation typically does: enum trace_does. */
static uint32_t typical_of(const struct trace_instruction *ins)
{
	switch ((int)ins->op) {
	case IR_ADD:
	case IR_ADDOV: return DOES_ADD | DOES_ADDRESS;
	case IR_SUB:
	case IR_SUBOV: return DOES_SUB;
	case IR_MUL:
	case IR_MULOV: return DOES_MUL;
	case IR_DIV: return DOES_DIV;
	case IR_NEG: return DOES_NEG;
	case IR_ABS: return DOES_ABS;
	case IR_MIN: return DOES_MIN;
	case IR_MAX: return DOES_MAX;
	case IR_FPMATH: return DOES_ROUND;
	case IR_CONV: return DOES_CONVERT;
	case IR_BAND: return DOES_AND;
	case IR_BOR: return DOES_OR;
	case IR_BXOR: return DOES_XOR;
	case IR_BNOT: return DOES_NOT;
	case IR_BSHL:
	case IR_BSHR:
	case IR_BSAR:
	case IR_BROL:
	case IR_BROR: return DOES_SHIFT;
	case IR_LT:
	case IR_GE:
	case IR_LE:
	case IR_GT:
	case IR_ULT:
	case IR_UGE:
	case IR_ULE:
	case IR_UGT:
	case IR_EQ:
	case IR_NE:
	case IR_ABC:
	case IR_RETF:
	case IR_HREFK: return DOES_COMPARE;
	case IR_AREF: return DOES_ADDRESS;
	default: return 0;
	}
}

static bool is_typical(const struct trace_instruction *ins, const struct machine_instruction *machine)
{
	return typical_of(ins) & machine->does;
}

/* SLOAD's address: BASE + 8*(slot - 1 - LJ_FR2) (asm_sload()). */
static bool loads_slot(const struct trace_block_code *block, const struct trace_instruction *ins,
		       const struct machine_instruction *machine)
{
	int64_t offset = SLOT_SIZE * ((int64_t)ins->op1 - (int64_t)frame_slots(block->layout->gc64));

	return machine->by_base && (machine->displacement == offset || machine->displacement == offset + 4 ||
				    machine->other_displacement == offset);
}

static bool is_spilled_to(const struct trace_instruction *ins, const struct machine_instruction *machine)
{
	return ins->spill && machine->on_stack &&
	       (machine->displacement == (int64_t)ins->spill * SPILL_SIZE ||
		machine->other_displacement == (int64_t)ins->spill * SPILL_SIZE);
}

/* Does it read the spill slot of one of the operands? */
static bool loads_operand(const struct trace_block_code *block, const struct trace_instruction *ins,
			  const struct machine_instruction *machine)
{
	const uint32_t refs[] = { ins->op1, ins->op2 };

	for (unsigned i = 0; i < 2; i++)
		if (refs[i] >= TRACE_REF_BASE && refs[i] - TRACE_REF_BASE < block->ir_count &&
		    is_spilled_to(&block->ir[refs[i] - TRACE_REF_BASE], machine))
			return true;
	return false;
}

/* The fit of what the machine instruction reads: the operands' registers, or a constant. */
static int fit_operands(const struct machine_instruction *machine, const struct operands *operands)
{
	int value = 0;

	for (unsigned i = 0; i < 2; i++) {
		uint32_t constant = operands->constant[i];

		if (machine->read & operands->reg[i])
			value += FIT_PLAUSIBLE;
		if (constant &&
		    (constant == (uint32_t)machine->immediate || (int64_t)constant == machine->displacement))
			value += FIT_OPERAND;
	}
	return value;
}

static int fit(const struct trace_block_code *block, const struct machine_instruction *machine, uint32_t ref)
{
	const struct trace_instruction *ins = &block->ir[ref - TRACE_REF_BASE];
	const struct operands *operands = &block->operands[ref - TRACE_REF_BASE];
	bool sets_result = has_result(ins) && machine->written & trace_register(ins->reg);
	int value = 0;

	if (machine->checks_gc)
		return ins->op == IR_LOOP || ins->op == IR_BASE || ins->op == IR_GCSTEP ? FIT_OPERAND
											: FIT_UNLIKELY;
	/* IR_BASE has no code; it stands for the head. */
	if (ins->op == IR_BASE)
		return machine->in_head ? 0 : FIT_UNLIKELY;
	if (machine->exits)
		return ins->guard || ins->op == IR_LOOP ? FIT_GOOD : may_call(ins) ? 0 : FIT_NEVER;
	if (machine->calls)
		return may_call(ins) ? FIT_GOOD : ins->op == IR_HREF || ins->op == IR_TBAR ? 0 : FIT_NEVER;
	if (ins->op == IR_SLOAD && (machine->loads || machine->stores))
		return loads_slot(block, ins, machine) && machine->loads
			       ? FIT_OPERAND + (sets_result ? FIT_RESULT : 0)
			       : FIT_UNLIKELY;
	/* ra_save() stores a result right after its computation. */
	if (machine->stores && machine->on_stack && machine->stored)
		return has_result(ins) && is_spilled_to(ins, machine) &&
				       machine->stored & trace_register(ins->reg)
			       ? FIT_OPERAND
			       : FIT_UNLIKELY;
	if (machine->does & DOES_CHECK_TYPE)
		return ins->guard && (is_load(ins) || ins->op == IR_SLOAD)
			       ? FIT_GOOD + fit_operands(machine, operands)
			       : FIT_UNLIKELY;
	if (is_store(ins))
		return machine->stores ? FIT_GOOD + fit_operands(machine, operands) : 0;
	if (sets_result)
		value += FIT_RESULT;
	if (is_typical(ins, machine))
		value += FIT_GOOD;
	else if (machine->loads && loads_operand(block, ins, machine))
		value += FIT_PLAUSIBLE;
	else if (is_load(ins) && machine->loads)
		value += sets_result || ins->guard ? FIT_PLAUSIBLE : 0;
	value += fit_operands(machine, operands);
	if (value == 0 && !has_result(ins) && !ins->guard && !may_call(ins))
		value = FIT_NO_CODE;
	return value;
}

/*---- The best alignment ----*/

/* How well a machine instruction fits the IR instruction of the one before it. */
static int fit_together(const struct machine_instruction *machine)
{
	const struct machine_instruction *before = machine - 1;

	/* Two jumps follow a comparison of numbers. */
	if (machine->exits)
		return before->calls ? FIT_AFTER_CALL : FIT_TOGETHER;
	/* ra_restore() reloads registers that an instruction has used. */
	if (machine->reloads)
		return FIT_TOGETHER;
	return before->calls || before->exits ? FIT_AFTER_CALL : 0;
}

/* If both belong to this IR instruction: does it repeat the computation of the one before it? */
static bool repeats(const struct trace_block_code *block, const struct machine_instruction *machine,
		    uint32_t ref)
{
	const struct trace_instruction *ins = &block->ir[ref - TRACE_REF_BASE];
	const struct machine_instruction *before = machine - 1;

	return (ins->op == IR_ADD || ins->op == IR_SUB || ins->op == IR_MUL || ins->op == IR_DIV) &&
	       machine->id == before->id && machine->written == before->written &&
	       machine->written & trace_register(ins->reg) && is_typical(ins, machine);
}

/* The search for the best assignment of IR instructions to machine instructions. */
struct assignment {
	const struct trace_block_code *block;
	/* For each IR instruction in [low, high): the score of the best assignment that gives it to the last
	 * machine instruction. */
	int32_t *scores;
	int32_t *next;
	uint32_t low, high;
	uint32_t *from; /* for each cell, the IR instruction of the machine instruction before it */
	size_t *rows;   /* where each machine instruction's cells begin in from[] */
};

static int32_t *score_of(const struct assignment *assignment, uint32_t ref)
{
	return &assignment->scores[ref - TRACE_REF_BASE];
}

/*
 * Extend the assignments by one machine instruction. Among equals this takes the last one, because the
 * setup of an operation precedes it.
 */
static void assign(struct assignment *assignment, size_t index)
{
	const struct machine_instruction *machine = &assignment->block->code[index];
	uint32_t *from = assignment->from + assignment->rows[index];
	int32_t stay = index > 0 ? fit_together(machine) : 0;
	uint32_t best = assignment->low, at = assignment->low;

	for (uint32_t ref = machine->low; ref < machine->high; ref++) {
		int32_t score, again = stay;

		if (index > 0 && repeats(assignment->block, machine, ref))
			again += FIT_NEVER;
		for (; at < assignment->high && at < ref; at++)
			if (*score_of(assignment, at) >= *score_of(assignment, best))
				best = at;
		from[ref - machine->low] = best;
		score = *score_of(assignment, best);
		if (ref >= assignment->low && ref < assignment->high &&
		    *score_of(assignment, ref) + again >= score) {
			from[ref - machine->low] = ref;
			score = *score_of(assignment, ref) + again;
		}
		assignment->next[ref - TRACE_REF_BASE] = score + fit(assignment->block, machine, ref);
	}
	memcpy(score_of(assignment, machine->low), assignment->next + (machine->low - TRACE_REF_BASE),
	       (machine->high - machine->low) * sizeof(*assignment->scores));
	assignment->low = machine->low;
	assignment->high = machine->high;
}

static void assign_all(struct assignment *assignment, uint32_t *ret_refs)
{
	const struct trace_block_code *block = assignment->block;
	uint32_t ref;

	for (size_t i = 0; i < block->count; i++)
		assign(assignment, i);
	ref = assignment->low;
	for (uint32_t at = ref; at < assignment->high; at++)
		if (*score_of(assignment, at) >= *score_of(assignment, ref))
			ref = at;
	for (size_t i = block->count; i-- > 0;) {
		ret_refs[i] = ref;
		ref = assignment->from[assignment->rows[i] + ref - block->code[i].low];
	}
}

/* False when out of memory or if there are too many cells. */
static bool find_best(const struct trace_block_code *block, uint32_t *ret_refs)
{
	struct assignment assignment = {
		.block = block,
		.scores = calloc(block->ir_count, sizeof(int32_t)),
		.next = calloc(block->ir_count, sizeof(int32_t)),
		.low = TRACE_REF_BASE,
		.high = TRACE_REF_BASE + block->ir_count,
		.rows = calloc(block->count + 1, sizeof(size_t)),
	};
	size_t *rows = assignment.rows;
	bool done = false;

	for (size_t i = 0; rows && i < block->count; i++)
		rows[i + 1] = rows[i] + block->code[i].high - block->code[i].low;
	if (assignment.scores && assignment.next && rows && rows[block->count] <= CELLS_MAX)
		assignment.from = malloc((rows[block->count] + 1) * sizeof(*assignment.from));
	if (assignment.from) {
		assign_all(&assignment, ret_refs);
		done = true;
	}
	free(assignment.scores);
	free(assignment.next);
	free(assignment.rows);
	free(assignment.from);
	return done;
}

/* The lower 32 bits of a constant, or of a table slot's expected key. 0 if there is none or it is small. */
static uint32_t constant_operand(const struct trace_block_code *block, uint32_t ref)
{
	struct trace_instruction slot;
	uint64_t value;

	if (trace_instruction(block->trace, block->layout, ref, &slot) && slot.op == IR_KSLOT)
		ref = slot.op1;
	return trace_constant(block->trace, block->layout, ref, &value) && (uint32_t)value > UINT16_MAX
		       ? (uint32_t)value
		       : 0;
}

static bool load_ir(struct trace_block_code *block)
{
	block->ir_count = trace_nins(block->trace, block->layout) - TRACE_REF_BASE;
	block->ir = calloc(block->ir_count, sizeof(*block->ir));
	block->operands = calloc(block->ir_count, sizeof(*block->operands));
	if (!block->ir || !block->operands)
		return false;
	for (uint32_t i = 0; i < block->ir_count; i++) {
		struct trace_instruction *ins = &block->ir[i];
		uint32_t refs[2];

		if (!trace_instruction(block->trace, block->layout, TRACE_REF_BASE + i, ins))
			return false;
		refs[0] = ins->op1;
		refs[1] = ins->op2;
		for (unsigned k = 0; k < 2; k++) {
			struct operands *operands = &block->operands[i];

			if (refs[k] < TRACE_REF_BIAS)
				operands->constant[k] = constant_operand(block, refs[k]);
			else if (refs[k] - TRACE_REF_BASE < i &&
				 has_result(&block->ir[refs[k] - TRACE_REF_BASE]))
				operands->reg[k] = trace_register(block->ir[refs[k] - TRACE_REF_BASE].reg);
		}
	}
	return true;
}

/*
 * May this instruction, at the start of the segment that IR_LOOP begins, be IR_LOOP's (asm_loop(),
 * asm_phi_shuffle())? These copy registers, make constants, spill and reload, and may take a step of the
 * collector.
 */
static bool may_join_loop(const struct trace_block_code *block, const struct machine_instruction *machine,
			  uint32_t ref)
{
	const struct trace_instruction *ins = &block->ir[ref - TRACE_REF_BASE];

	if (machine->checks_gc)
		return true;
	if (machine->exits || machine->calls || (machine->stores && !machine->on_stack) ||
	    (machine->loads && !machine->on_stack && !machine->by_global))
		return false;
	return !is_typical(ins, machine) || !has_result(ins) ||
	       !(machine->written & trace_register(ins->reg));
}

static void mark_joins(const struct trace_block_code *block, struct trace_code *code)
{
	for (size_t i = 1; i < block->count; i++) {
		const struct machine_instruction *machine = &block->code[i];
		struct code_piece *piece = &code->pieces[i];
		bool begins = machine->low_snapshot != machine[-1].low_snapshot;

		piece->joins_loop = block->ir[machine->low - TRACE_REF_BASE].op == IR_LOOP &&
				    (begins || piece[-1].joins_loop) &&
				    may_join_loop(block, machine, piece->ref);
	}
}

bool trace_code_align(struct trace_code *code, const struct trace *trace, const struct layout *layout,
		      const uint8_t *bytes, const struct trace_exits *exits)
{
	struct trace_block_code block = { .trace = trace, .layout = layout };
	uint32_t *refs = NULL;
	bool done = false;

	*code = (struct trace_code){ 0 };
	if (trace_nins(trace, layout) > TRACE_REF_BASE && load_ir(&block) &&
	    trace_code_disassemble(&block, bytes) && bound(&block, exits)) {
		mark_targets(&block);
		trace_code_mark(&block);
		refs = calloc(block.count, sizeof(*refs));
		code->pieces = calloc(block.count, sizeof(*code->pieces));
		done = refs && code->pieces && find_best(&block, refs);
	}
	if (done) {
		uint32_t lowered = 0;

		code->count = block.count;
		for (size_t i = 0; i < block.count; i++) {
			bool is_followed = i > 0 && !block.code[i - 1].jumps && !block.code[i].jumped_to;

			if (i > 0 && block.code[i - 1].lowers_base)
				lowered++;
			code->pieces[i] = (struct code_piece){
				.offset = block.code[i].offset,
				.ref = block.code[i].in_head ? TRACE_REF_BASE : refs[i],
				.low_snapshot = block.code[i].low_snapshot,
				.high_snapshot = block.code[i].high_snapshot,
				.lowered = lowered,
				.is_quick = is_followed && block.code[i].is_quick,
				.is_after_slow = is_followed && block.code[i - 1].is_slow,
				.base_is_moved = i >= block.moved_from,
			};
		}
		mark_joins(&block, code);
	} else {
		trace_code_clear(code);
	}
	free(refs);
	free(block.ir);
	free(block.operands);
	free(block.code);
	return done;
}

void trace_code_clear(struct trace_code *code)
{
	free(code->pieces);
	*code = (struct trace_code){ 0 };
}
