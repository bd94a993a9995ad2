/* SPDX-License-Identifier: MIT */
#include "unwind/trace/trace_code_parts.h"

#include "memory/array.h"
#include "unwind/elf/register_part_x86_64.h"
#include "unwind/lua/luajit.h"
#include "unwind/machine/machine_decoder.h"

enum {
	RID_NONE = 0xff,
	RID_EDX = 2, /* RID_BASE */
	RID_ESP = 4,
	RID_R14 = 14, /* RID_DISPATCH with GC64 */
	RID_XMM = 16,
	HEAD_MAX = 128, /* machine instructions searched for the head's end */
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

static uint64_t rid_bit(unsigned reg)
{
	return trace_register(rid_of(reg));
}

static bool moves(unsigned id)
{
	return id == X86_INS_MOV || id == X86_INS_MOVSD || id == X86_INS_MOVAPS || id == X86_INS_MOVABS;
}

static uint32_t does(unsigned id)
{
	switch (id) {
	case X86_INS_ADDSD:
	case X86_INS_ADD: return DOES_ADD;
	case X86_INS_LEA: return DOES_ADDRESS;
	case X86_INS_SUBSD:
	case X86_INS_SUB: return DOES_SUB;
	case X86_INS_MULSD:
	case X86_INS_IMUL: return DOES_MUL;
	case X86_INS_DIVSD: return DOES_DIV;
	case X86_INS_XORPS:
	case X86_INS_NEG: return DOES_NEG;
	case X86_INS_ANDPS: return DOES_ABS;
	case X86_INS_MINSD:
	case X86_INS_CMOVL:
	case X86_INS_CMOVLE: return DOES_MIN;
	case X86_INS_MAXSD:
	case X86_INS_CMOVG:
	case X86_INS_CMOVGE: return DOES_MAX;
	case X86_INS_SQRTSD:
	case X86_INS_ROUNDSD: return DOES_ROUND;
	case X86_INS_CVTSI2SD:
	case X86_INS_CVTTSD2SI:
	case X86_INS_CVTSS2SD:
	case X86_INS_CVTSD2SS:
	case X86_INS_MOVSX:
	case X86_INS_MOVSXD: return DOES_CONVERT;
	case X86_INS_UCOMISD: return DOES_CONVERT | DOES_COMPARE;
	case X86_INS_MOVZX: return DOES_CONVERT | DOES_AND;
	case X86_INS_AND: return DOES_AND;
	case X86_INS_OR: return DOES_OR;
	case X86_INS_XOR: return DOES_XOR;
	case X86_INS_NOT: return DOES_NOT;
	case X86_INS_SHL:
	case X86_INS_SHR:
	case X86_INS_SAR:
	case X86_INS_ROL:
	case X86_INS_ROR:
	case X86_INS_SHLX:
	case X86_INS_SHRX:
	case X86_INS_SARX:
	case X86_INS_RORX: return DOES_SHIFT;
	case X86_INS_CMP:
	case X86_INS_TEST:
	case X86_INS_COMISD: return DOES_COMPARE;
	default: return 0;
	}
}

/* Does it take a dozen cycles or more, in which no later instruction finishes? */
static bool is_slow(unsigned id)
{
	return id == X86_INS_DIVSD || id == X86_INS_DIVSS || id == X86_INS_SQRTSD || id == X86_INS_SQRTSS ||
	       id == X86_INS_DIV || id == X86_INS_IDIV;
}

static void take_apart(const cs_insn *insn, const struct trace *trace, bool gc64,
		       struct machine_instruction *machine)
{
	const cs_x86 *x86 = &insn->detail->x86;
	uint8_t base = RID_NONE;

	*machine = (struct machine_instruction){
		.offset = (uint32_t)(insn->address - trace->mcode),
		.id = insn->id,
		.does = does(insn->id),
		.jumps = insn->id == X86_INS_JMP,
		.is_slow = is_slow(insn->id),
		.calls = insn->id == X86_INS_CALL,
		.is_quick = insn->id != X86_INS_CALL && insn->id != X86_INS_IMUL,
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
			base = rid_of(operand->mem.base);
			machine->displacement = operand->mem.disp;
			machine->other_displacement = operand->mem.disp;
			/* lea only computes the address. */
			if (insn->id != X86_INS_LEA) {
				machine->stores = i == 0 && !compares(insn->id) && !machine->calls;
				machine->loads = !machine->stores;
			}
		} else if (operand->type == X86_OP_REG && i == 0 && !compares(insn->id)) {
			machine->written = rid_bit(operand->reg);
		} else if (operand->type == X86_OP_REG && machine->stores) {
			machine->stored = rid_bit(operand->reg);
		} else if (operand->type == X86_OP_IMM) {
			machine->immediate = operand->imm;
			if (x86->op_count == 1)
				machine->target = (uint64_t)operand->imm;
		}
	}
	machine->reloads = machine->loads && moves(insn->id) &&
			   (base == RID_NONE || base == RID_ESP || base == RID_R14);
	machine->on_stack = base == RID_ESP;
	machine->by_base = base == RID_EDX;
	machine->by_global = base == (gc64 ? RID_R14 : RID_NONE);
	machine->exits = machine->target && insn->id != X86_INS_JMP && !machine->calls &&
			 insn->id != X86_INS_PUSH && machine->target - trace->mcode >= trace->szmcode;
}

bool trace_code_disassemble(struct trace_block_code *block, const uint8_t *bytes)
{
	size_t left = block->trace->szmcode, size = 0;
	uint64_t address = block->trace->mcode;
	const uint8_t *code = bytes;
	bool whole = true;
	struct machine_decoder decoder;

	if (!machine_decoder_open(&decoder))
		return false;
	while (left && machine_decoder_next(&decoder, &code, &left, &address)) {
		struct machine_instruction *larger = array_grow(block->code, &size, block->count + 1,
								sizeof(*larger));

		whole = larger != NULL;
		if (!whole)
			break;
		block->code = larger;
		take_apart(decoder.insn, block->trace, block->layout->gc64, &block->code[block->count++]);
	}
	machine_decoder_close(&decoder);
	return whole && block->count > 0;
}

/* call lj_gc_step_jit; test eax, eax; jnz exit (asm_gc_check()) */
static void mark_gc_checks(struct trace_block_code *block)
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
size_t trace_code_head(const struct trace_block_code *block)
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

static void mark_head(struct trace_block_code *block)
{
	size_t length = trace_code_head(block);

	for (size_t i = 0; i < length; i++)
		block->code[i].in_head = true;
}

/*
 * In the tail, asm_tail_link() raises BASE to that of the linked trace, and stores it. The index
 * of the instruction after that; the count if there is none.
 */
static size_t moved_base_from(const struct trace_block_code *block)
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
		    block->code[i - 2].written == trace_register(RID_EDX))
			return i;
	}
	return block->count;
}

/* asm_retf(): add BASE, -8*delta; mov [jit_base], BASE */
static bool lowers_base(const struct trace_block_code *block, size_t i)
{
	const struct machine_instruction *add = &block->code[i], *store = add + 1;

	return i + 1 < block->count && add->id == X86_INS_ADD && !add->stores && !add->loads &&
	       add->written && (int32_t)add->immediate < 0 && (int32_t)add->immediate % SLOT_SIZE == 0 &&
	       store->id == X86_INS_MOV && store->stores && store->stored == add->written &&
	       (block->layout->gc64
			? store->by_global && store->displacement ==
						      block->layout->g_jit_base - block->layout->GG_dispatch
			: store->by_global);
}

void trace_code_mark(struct trace_block_code *block)
{
	mark_gc_checks(block);
	mark_head(block);
	for (size_t i = 0; i + 1 < block->count; i++)
		block->code[i + 1].lowers_base = lowers_base(block, i);
	block->moved_from = moved_base_from(block);
}

bool trace_code_has_stubs(void)
{
	return false;
}
