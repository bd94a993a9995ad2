/* SPDX-License-Identifier: MIT */
#include "memory/array.h"
#include "unwind/jit/trace_code.h"

#include <stdlib.h>
#include <string.h>

#include <capstone/capstone.h>

#include "unwind/elf/register_part_x86_64.h"
#include "unwind/jit/trace_block.h"
#include "unwind/lua/luajit.h"

enum {
	RID_NONE = 0xff,
	RID_EDX = 2, /* RID_BASE */
	RID_ESP = 4,
	SPILL_SIZE = 4, /* sps_scale() */
	RID_R14 = 14,   /* RID_DISPATCH with GC64 */
	RID_XMM = 16,
	CELLS_MAX = 1 << 23,
	HEAD_MAX = 128, /* machine instructions searched for the head's end */
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

/* A machine instruction, by properties that show its purpose. */
struct machine_instruction {
	uint32_t offset;
	unsigned id; /* X86_INS_* */
	bool exits;  /* a conditional jump out of the trace */
	bool calls;
	bool in_head;
	bool is_quick;  /* takes a cycle at most: general registers only */
	bool jumped_to; /* the target of a jump within the trace */
	bool checks_gc; /* part of the GC step at the start of a loop or trace */
	bool stores;
	bool loads;
	uint8_t written; /* RID of the register written, or RID_NONE */
	uint8_t stored;  /* RID of the register stored, or RID_NONE */
	uint8_t base;    /* RID of the memory operand's base, or RID_NONE */
	bool reloads;    /* only loads a register from its place in memory */
	uint32_t read;   /* RIDs of registers read, as bits */
	int64_t displacement;
	int64_t immediate;
	uint64_t target;
	uint32_t low, high; /* the IR instructions that it may belong to, without high */
	uint32_t low_snapshot, high_snapshot;
};

/* An IR instruction's operands, as they may show in machine code. */
struct operands {
	uint32_t reg[2];      /* RID as a bit */
	uint32_t constant[2]; /* the lower 32 bits; 0 if none, or too small to be significant */
};

struct block {
	const struct trace *trace;
	const struct layout *layout;
	struct machine_instruction *code;
	size_t count;
	struct trace_instruction *ir; /* by reference, less TRACE_REF_BASE */
	struct operands *operands;    /* likewise */
	uint32_t ir_count;
};

/*---- Disassembly ----*/

static uint8_t rid_of(unsigned reg)
{
	struct register_part part = register_part(reg);

	if (reg >= X86_REG_XMM0 && reg <= X86_REG_XMM15)
		return (uint8_t)(RID_XMM + reg - X86_REG_XMM0);
	return part.index >= 0 && part.shift == 0 ? (uint8_t)part.index : RID_NONE;
}

static bool compares(unsigned id)
{
	return id == X86_INS_CMP || id == X86_INS_TEST || id == X86_INS_UCOMISD || id == X86_INS_COMISD;
}

static uint32_t rid_bit(unsigned reg)
{
	uint8_t rid = rid_of(reg);

	return rid == RID_NONE ? 0 : 1u << rid;
}

static bool moves(unsigned id)
{
	return id == X86_INS_MOV || id == X86_INS_MOVSD || id == X86_INS_MOVAPS || id == X86_INS_MOVABS;
}

static void take_apart(const cs_insn *insn, const struct trace *trace, struct machine_instruction *machine)
{
	const cs_x86 *x86 = &insn->detail->x86;

	*machine = (struct machine_instruction){
		.offset = (uint32_t)(insn->address - trace->mcode),
		.id = insn->id,
		.calls = insn->id == X86_INS_CALL,
		.is_quick = insn->id != X86_INS_CALL && insn->id != X86_INS_IMUL,
		.written = RID_NONE,
		.stored = RID_NONE,
		.base = RID_NONE,
	};
	for (uint8_t i = 0; i < x86->op_count; i++) {
		const cs_x86_op *operand = &x86->operands[i];

		if ((operand->type == X86_OP_MEM && insn->id != X86_INS_LEA) ||
		    (operand->type == X86_OP_REG && rid_of(operand->reg) >= RID_XMM))
			machine->is_quick = false;
		if (operand->type == X86_OP_MEM)
			machine->read |= rid_bit(operand->mem.base) | rid_bit(operand->mem.index);
		else if (operand->type == X86_OP_REG && operand->access & CS_AC_READ)
			machine->read |= rid_bit(operand->reg);
		if (operand->type == X86_OP_MEM) {
			machine->base = rid_of(operand->mem.base);
			machine->displacement = operand->mem.disp;
			/* lea only computes the address. */
			if (insn->id != X86_INS_LEA) {
				machine->stores = i == 0 && !compares(insn->id) && !machine->calls;
				machine->loads = !machine->stores;
			}
		} else if (operand->type == X86_OP_REG && i == 0 && !compares(insn->id)) {
			machine->written = rid_of(operand->reg);
		} else if (operand->type == X86_OP_REG && machine->stores) {
			machine->stored = rid_of(operand->reg);
		} else if (operand->type == X86_OP_IMM) {
			machine->immediate = operand->imm;
			if (x86->op_count == 1)
				machine->target = (uint64_t)operand->imm;
		}
	}
	machine->reloads = machine->loads && moves(insn->id) &&
			   (machine->base == RID_NONE || machine->base == RID_ESP ||
			    machine->base == RID_R14);
	machine->exits = machine->target && insn->id != X86_INS_JMP && !machine->calls &&
			 insn->id != X86_INS_PUSH && machine->target - trace->mcode >= trace->szmcode;
}

static bool disassemble(struct block *block, const uint8_t *bytes)
{
	size_t left = block->trace->szmcode, size = 0;
	uint64_t address = block->trace->mcode;
	const uint8_t *code = bytes;
	bool whole = true;
	cs_insn *insn;
	csh handle;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return false;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(handle);
	while (insn && left && cs_disasm_iter(handle, &code, &left, &address, insn)) {
		struct machine_instruction *larger = array_grow(block->code, &size, block->count + 1,
								sizeof(*larger));

		whole = larger != NULL;
		if (!whole)
			break;
		block->code = larger;
		take_apart(insn, block->trace, &block->code[block->count++]);
	}
	if (insn)
		cs_free(insn, 1);
	cs_close(&handle);
	return whole && block->count > 0;
}

/* call lj_gc_step_jit; test eax, eax; jnz exit (asm_gc_check()) */
static void mark_gc_checks(struct block *block)
{
	for (size_t i = 0; i + 2 < block->count; i++) {
		struct machine_instruction *machine = &block->code[i];

		if (machine[0].calls && machine[1].id == X86_INS_TEST && machine[2].exits)
			machine[0].checks_gc = machine[1].checks_gc = machine[2].checks_gc = true;
	}
}

/*
 * The head ends with the store of the trace's number to g->vmstate (asm_head_root(),
 * asm_head_side()), and the loads of BASE and of all else that stays in registers.
 * 0 if there is no such store.
 */
static size_t head_length(const struct block *block)
{
	size_t length = 0;

	for (size_t i = 0; i < block->count && i < HEAD_MAX && !length; i++)
		if (block->code[i].id == X86_INS_MOV && block->code[i].stores &&
		    block->code[i].immediate == block->trace->number)
			length = i + 1;
	while (length && length < block->count && block->code[length].reloads)
		length++;
	return length;
}

static void mark_targets(struct block *block)
{
	for (size_t i = 0; i < block->count; i++) {
		uint64_t offset = block->code[i].target - block->trace->mcode;

		for (size_t k = 0; offset < block->trace->szmcode && k < block->count; k++)
			if (block->code[k].offset == offset)
				block->code[k].jumped_to = true;
	}
}

static void mark_head(struct block *block)
{
	size_t length = head_length(block);

	for (size_t i = 0; i < length; i++)
		block->code[i].in_head = true;
}

/*---- Bounds ----*/

/*
 * With SnapShot.mcofs, the start of each snapshot's code is known. The snapshots of
 * a side trace's inherited slots have no code, and their offset is the code's end.
 */
static void bound_by_mcofs(struct block *block, uint32_t snapshots)
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
static void bound_by_exits(struct block *block, uint32_t snapshots, const struct trace_exits *exits)
{
	uint32_t low = 0;
	size_t begin = 0;

	/* Skip the head: its check of the stack's size uses an exit of the parent. */
	for (size_t i = head_length(block); i < block->count; i++) {
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

static bool bound(struct block *block, const struct trace_exits *exits)
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

/* Does this IR operation typically use this machine instruction? */
static bool is_typical(const struct trace_instruction *ins, unsigned id)
{
	switch ((int)ins->op) {
	case IR_ADD:
	case IR_ADDOV: return id == X86_INS_ADDSD || id == X86_INS_ADD || id == X86_INS_LEA;
	case IR_SUB:
	case IR_SUBOV: return id == X86_INS_SUBSD || id == X86_INS_SUB;
	case IR_MUL:
	case IR_MULOV: return id == X86_INS_MULSD || id == X86_INS_IMUL;
	case IR_DIV: return id == X86_INS_DIVSD;
	case IR_NEG: return id == X86_INS_XORPS || id == X86_INS_NEG;
	case IR_ABS: return id == X86_INS_ANDPS;
	case IR_MIN: return id == X86_INS_MINSD || id == X86_INS_CMOVL || id == X86_INS_CMOVLE;
	case IR_MAX: return id == X86_INS_MAXSD || id == X86_INS_CMOVG || id == X86_INS_CMOVGE;
	case IR_FPMATH: return id == X86_INS_SQRTSD || id == X86_INS_ROUNDSD;
	case IR_CONV:
		return id == X86_INS_CVTSI2SD || id == X86_INS_CVTTSD2SI || id == X86_INS_CVTSS2SD ||
		       id == X86_INS_CVTSD2SS || id == X86_INS_UCOMISD || id == X86_INS_MOVZX ||
		       id == X86_INS_MOVSX || id == X86_INS_MOVSXD;
	case IR_BAND: return id == X86_INS_AND || id == X86_INS_MOVZX;
	case IR_BOR: return id == X86_INS_OR;
	case IR_BXOR: return id == X86_INS_XOR;
	case IR_BNOT: return id == X86_INS_NOT;
	case IR_BSHL:
	case IR_BSHR:
	case IR_BSAR:
	case IR_BROL:
	case IR_BROR:
		return id == X86_INS_SHL || id == X86_INS_SHR || id == X86_INS_SAR || id == X86_INS_ROL ||
		       id == X86_INS_ROR || id == X86_INS_SHLX || id == X86_INS_SHRX || id == X86_INS_SARX ||
		       id == X86_INS_RORX;
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
	case IR_HREFK: return compares(id);
	case IR_AREF: return id == X86_INS_LEA;
	default: return false;
	}
}

/* SLOAD's address: BASE + 8*(slot - 1 - LJ_FR2) (asm_sload()). */
static bool loads_slot(const struct block *block, const struct trace_instruction *ins,
		       const struct machine_instruction *machine)
{
	int64_t offset = SLOT_SIZE * ((int64_t)ins->op1 - (int64_t)frame_slots(block->layout->gc64));

	return machine->base == RID_EDX &&
	       (machine->displacement == offset || machine->displacement == offset + 4);
}

static bool is_spilled_to(const struct trace_instruction *ins, const struct machine_instruction *machine)
{
	return ins->spill && machine->base == RID_ESP &&
	       machine->displacement == (int64_t)ins->spill * SPILL_SIZE;
}

/* Does it read the spill slot of one of the operands? */
static bool loads_operand(const struct block *block, const struct trace_instruction *ins,
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

static int fit(const struct block *block, const struct machine_instruction *machine, uint32_t ref)
{
	const struct trace_instruction *ins = &block->ir[ref - TRACE_REF_BASE];
	const struct operands *operands = &block->operands[ref - TRACE_REF_BASE];
	bool sets_result = has_result(ins) && machine->written == ins->reg;
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
	if (machine->stores && machine->base == RID_ESP && machine->stored != RID_NONE)
		return is_spilled_to(ins, machine) && machine->stored == ins->reg ? FIT_OPERAND
										  : FIT_UNLIKELY;
	if (is_store(ins))
		return machine->stores ? FIT_GOOD + fit_operands(machine, operands) : 0;
	if (sets_result)
		value += FIT_RESULT;
	if (is_typical(ins, machine->id))
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
static bool repeats(const struct block *block, const struct machine_instruction *machine, uint32_t ref)
{
	const struct trace_instruction *ins = &block->ir[ref - TRACE_REF_BASE];
	const struct machine_instruction *before = machine - 1;

	return (ins->op == IR_ADD || ins->op == IR_SUB || ins->op == IR_MUL || ins->op == IR_DIV) &&
	       machine->id == before->id && machine->written == before->written &&
	       machine->written == ins->reg && is_typical(ins, machine->id);
}

/* The search for the best assignment of IR instructions to machine instructions. */
struct assignment {
	const struct block *block;
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
	const struct block *block = assignment->block;
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
static bool find_best(const struct block *block, uint32_t *ret_refs)
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

/*
 * In the tail, asm_tail_link() raises BASE to that of the linked trace, and stores it. The index
 * of the instruction after that; the count if there is none.
 */
static size_t moved_base_from(const struct block *block)
{
	size_t last = block->count;

	while (last > 0 && block->code[last - 1].id == X86_INS_NOP)
		last--;
	if (last == 0 || block->code[last - 1].id != X86_INS_JMP)
		return block->count;
	for (size_t i = last - 1; i > 0 && last - i < 4; i--) {
		const struct machine_instruction *store = &block->code[i - 1];

		if (store->id == X86_INS_MOV && store->stores && i > 1 &&
		    block->code[i - 2].id == X86_INS_ADD && block->code[i - 2].immediate > 0 &&
		    block->code[i - 2].written == RID_EDX)
			return i;
	}
	return block->count;
}

/* asm_retf(): add BASE, -8*delta; mov [jit_base], BASE */
static bool lowers_base(const struct block *block, size_t i)
{
	const struct machine_instruction *add = &block->code[i], *store = add + 1;

	return i + 1 < block->count && add->id == X86_INS_ADD && !add->stores && !add->loads &&
	       add->written != RID_NONE && (int32_t)add->immediate < 0 &&
	       (int32_t)add->immediate % SLOT_SIZE == 0 && store->id == X86_INS_MOV && store->stores &&
	       store->stored == add->written &&
	       (block->layout->gc64
			? store->base == RID_R14 && store->displacement == block->layout->g_jit_base -
										   block->layout->GG_dispatch
			: store->base == RID_NONE);
}

/* The lower 32 bits of a constant, or of a table slot's expected key. 0 if there is none or it is small. */
static uint32_t constant_operand(const struct block *block, uint32_t ref)
{
	struct trace_instruction slot;
	uint64_t value;

	if (trace_instruction(block->trace, block->layout, ref, &slot) && slot.op == IR_KSLOT)
		ref = slot.op1;
	return trace_constant(block->trace, block->layout, ref, &value) && (uint32_t)value > UINT16_MAX
		       ? (uint32_t)value
		       : 0;
}

static bool load_ir(struct block *block)
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
				operands->reg[k] = 1u << block->ir[refs[k] - TRACE_REF_BASE].reg;
		}
	}
	return true;
}

/* Does it take a dozen cycles or more, in which no later instruction finishes? */
static bool is_slow(unsigned id)
{
	return id == X86_INS_DIVSD || id == X86_INS_DIVSS || id == X86_INS_SQRTSD || id == X86_INS_SQRTSS ||
	       id == X86_INS_DIV || id == X86_INS_IDIV;
}

bool trace_code_align(struct trace_code *code, const struct trace *trace, const struct layout *layout,
		      const uint8_t *bytes, const struct trace_exits *exits)
{
	struct block block = { .trace = trace, .layout = layout };
	uint32_t *refs = NULL;
	bool done = false;

	*code = (struct trace_code){ 0 };
	if (trace_nins(trace, layout) > TRACE_REF_BASE && load_ir(&block) && disassemble(&block, bytes) &&
	    bound(&block, exits)) {
		mark_gc_checks(&block);
		mark_head(&block);
		mark_targets(&block);
		refs = calloc(block.count, sizeof(*refs));
		code->pieces = calloc(block.count, sizeof(*code->pieces));
		done = refs && code->pieces && find_best(&block, refs);
	}
	if (done) {
		size_t moved_from = moved_base_from(&block), head = head_length(&block);
		uint32_t lowered = 0;

		code->count = block.count;
		for (size_t i = 0; i < block.count; i++) {
			bool is_followed = i > 0 && block.code[i - 1].id != X86_INS_JMP &&
					   !block.code[i].jumped_to;

			if (i >= 2 && lowers_base(&block, i - 2))
				lowered++;
			code->pieces[i] = (struct code_piece){
				.offset = block.code[i].offset,
				.ref = i < head ? TRACE_REF_BASE : refs[i],
				.low_snapshot = block.code[i].low_snapshot,
				.high_snapshot = block.code[i].high_snapshot,
				.lowered = lowered,
				.is_quick = is_followed && block.code[i].is_quick,
				.is_after_slow = is_followed && is_slow(block.code[i - 1].id),
				.base_is_moved = i >= moved_from,
			};
		}
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
