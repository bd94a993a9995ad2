/* SPDX-License-Identifier: MIT */
#include "unwind/members/member_loads_parts.h"

#include <stdlib.h>

#include "unwind/elf/register_part_x86_64.h"
#include "unwind/machine/machine_decoder.h"

struct member_decoder {
	struct machine_decoder machine;
};

static const struct member_value unknown;

static struct member_value *value_of(struct member_state *state, x86_reg reg)
{
	struct register_part part = register_part(reg);

	return part.index < 0 || part.size != sizeof(uint64_t) ? NULL : &state->values[part.index];
}

static void forget(struct member_state *state, x86_reg reg)
{
	struct register_part part = register_part(reg);

	if (part.index >= 0)
		state->values[part.index] = unknown;
}

/* The path of a memory operand. False if it is unknown. */
static bool path_of(struct member_state *state, const x86_op_mem *mem, struct member_value *ret_path)
{
	const struct member_value *base = mem->segment == X86_REG_INVALID ? value_of(state, mem->base) : NULL;
	bool is_indexed = mem->index != X86_REG_INVALID;

	return base && (!is_indexed || mem->scale == sizeof(uint64_t)) &&
	       member_path(base, mem->disp, is_indexed, ret_path);
}

static void note_loads(const struct member_code *code, struct member_state *state)
{
	const cs_insn *insn = code->decoder->machine.insn;
	const cs_x86 *x86 = &insn->detail->x86;

	if (insn->id == X86_INS_LEA || insn->id == X86_INS_NOP)
		return;
	for (size_t i = 0; i < x86->op_count; i++) {
		const cs_x86_op *operand = &x86->operands[i];
		struct member_value path;

		if (operand->type == X86_OP_MEM && (operand->access & CS_AC_READ) &&
		    path_of(state, &operand->mem, &path))
			member_note(code->loads, &path, operand->size);
	}
}

/* What an instruction leaves in the register that it writes. */
static struct member_value result_of(const cs_insn *insn, struct member_state *state)
{
	const cs_x86 *x86 = &insn->detail->x86;
	const cs_x86_op *to = &x86->operands[0], *from = &x86->operands[1];
	const struct member_value *source = from->type == X86_OP_REG ? value_of(state, from->reg) : NULL;
	const struct member_value *own = value_of(state, to->reg);
	struct member_value path;

	if (x86->op_count != 2 || !own)
		return unknown;
	switch ((int)insn->id) {
	case X86_INS_MOV:
		if (from->type == X86_OP_MEM && path_of(state, &from->mem, &path))
			return path;
		return source ? *source : unknown;
	case X86_INS_LEA:
		source = value_of(state, from->mem.base);
		if (!source || !source->is_known || from->mem.index != X86_REG_INVALID)
			return unknown;
		path = *source;
		path.plus += from->mem.disp;
		return path;
	case X86_INS_ADD:
		if (from->type != X86_OP_IMM || !own->is_known)
			return unknown;
		path = *own;
		path.plus += from->imm;
		return path;
	default: return unknown;
	}
}

static void follow(const cs_insn *insn, struct member_state *state)
{
	static const x86_reg clobbered[] = { X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RSI, X86_REG_RDI,
					     X86_REG_R8,  X86_REG_R9,  X86_REG_R10, X86_REG_R11 };
	const cs_x86_op *to = &insn->detail->x86.operands[0];
	struct member_value result = unknown, *written = NULL;

	if (insn->id == X86_INS_CALL) {
		for (size_t i = 0; i < sizeof(clobbered) / sizeof(clobbered[0]); i++)
			forget(state, clobbered[i]);
		return;
	}
	if (insn->id == X86_INS_CMP || insn->id == X86_INS_TEST)
		return;
	if (insn->detail->x86.op_count > 0 && to->type == X86_OP_REG) {
		written = value_of(state, to->reg);
		result = result_of(insn, state);
	}
	for (size_t i = 0; i < insn->detail->regs_write_count; i++)
		forget(state, insn->detail->regs_write[i]);
	for (size_t i = 0; i < insn->detail->x86.op_count; i++)
		if (insn->detail->x86.operands[i].type == X86_OP_REG &&
		    (insn->detail->x86.operands[i].access & CS_AC_WRITE))
			forget(state, insn->detail->x86.operands[i].reg);
	if (result.is_known && written)
		*written = result;
}

bool member_code_open(struct member_code *code, struct member_state *state)
{
	struct member_decoder *decoder = calloc(1, sizeof(*decoder));

	if (!decoder)
		return false;
	if (!machine_decoder_open(&decoder->machine)) {
		free(decoder);
		return false;
	}
	code->decoder = decoder;
	state->values[RDI].is_known = true;
	return true;
}

void member_code_close(struct member_code *code)
{
	machine_decoder_close(&code->decoder->machine);
	free(code->decoder);
}

enum member_step member_code_step(const struct member_code *code, size_t *offset, struct member_state *state,
				  uint64_t *ret_target)
{
	const uint8_t *next = code->bytes + *offset;
	size_t left = code->length - *offset;
	uint64_t pc = code->address + *offset;
	cs_insn *insn = code->decoder->machine.insn;
	const cs_x86_op *target = &insn->detail->x86.operands[0];

	if (!machine_decoder_next(&code->decoder->machine, &next, &left, &pc) || insn->id == X86_INS_RET)
		return MEMBER_ENDS;
	*offset = code->length - left;
	note_loads(code, state);
	if (!machine_decoder_jumps(&code->decoder->machine)) {
		follow(insn, state);
		return MEMBER_ON;
	}
	if (target->type != X86_OP_IMM)
		return insn->id == X86_INS_JMP ? MEMBER_ENDS : MEMBER_ON;
	*ret_target = (uint64_t)target->imm;
	return insn->id == X86_INS_JMP ? MEMBER_JUMPS : MEMBER_BRANCHES;
}
