/* SPDX-License-Identifier: MIT */
#include "unwind/native/code_path.h"

#include "unwind/native/code_path_parts.h"
#include "unwind/native/vm_decoder_x86_64.h"

enum { WORD = 8 };

/* DWARF's numbers of the registers that instructions use without naming them. */
enum { NUMBER_RCX = 2, NUMBER_RBP = 6, NUMBER_RSP = REGISTER_NUMBER_SP };

static const struct path_value unknown = { .kind = PATH_UNKNOWN };

/*---- Memory ----*/

static void push(struct code_path *path, struct path_value value)
{
	path->registers[NUMBER_RSP] = code_path_plus(path->registers[NUMBER_RSP], -WORD);
	code_path_store(path, path->registers[NUMBER_RSP], WORD, value);
}

static struct path_value pop(struct code_path *path)
{
	struct path_value value = code_path_load(path, path->registers[NUMBER_RSP]);

	path->registers[NUMBER_RSP] = code_path_plus(path->registers[NUMBER_RSP], WORD);
	return value;
}

/*---- Operands ----*/

/* DWARF's number of a whole 64-bit register; -1 for any other. */
static int whole_register(x86_reg reg)
{
	struct register_part part = register_part(reg);

	return part.size == WORD ? register_dwarf_number(part.index) : -1;
}

/* A register, or a part of it, gets a value. */
static void set_register(struct code_path *path, x86_reg reg, struct path_value value)
{
	struct register_part part = register_part(reg);

	if (part.index >= 0)
		path->registers[register_dwarf_number(part.index)] = part.size == WORD ? value : unknown;
}

static struct path_value address_of(const struct code_path *path, const cs_x86_op *operand)
{
	int base = whole_register(operand->mem.base);

	if (base < 0 || operand->mem.index != X86_REG_INVALID || operand->mem.segment != X86_REG_INVALID)
		return unknown;
	return code_path_plus(path->registers[base], operand->mem.disp);
}

static struct path_value get(const struct code_path *path, const cs_x86_op *operand)
{
	int number;

	switch (operand->type) {
	case X86_OP_REG:
		number = whole_register(operand->reg);
		return number < 0 ? unknown : path->registers[number];
	case X86_OP_MEM:
		return operand->size == WORD ? code_path_load(path, address_of(path, operand)) : unknown;
	case X86_OP_IMM:
	case X86_OP_INVALID: break;
	}
	return unknown;
}

static void set(struct code_path *path, const cs_x86_op *operand, struct path_value value)
{
	if (operand->type == X86_OP_MEM)
		code_path_store(path, address_of(path, operand), operand->size, value);
	else
		set_register(path, operand->reg, value);
}

/*---- Instructions ----*/

static void set_written(struct code_path *path, const struct vm_instruction *instruction)
{
	for (uint8_t i = 0; i < instruction->written_count; i++)
		set_register(path, instruction->written[i], unknown);
	for (uint8_t i = 0; i < instruction->operand_count && i < VM_OPERANDS_MAX; i++)
		if (instruction->operands[i].type == X86_OP_MEM &&
		    instruction->operands[i].access & CS_AC_WRITE)
			set(path, &instruction->operands[i], unknown);
}

/* A call returns with an unchanged stack. Caller-saved registers are unknown after it. */
static void pass_call(struct code_path *path, const cs_x86_op *to)
{
	const struct path_value sp = path->registers[NUMBER_RSP];

	/* A call of the next instruction, which pushes its address. */
	if (to->type == X86_OP_IMM && (uint64_t)to->imm == path->pc) {
		push(path, unknown);
		return;
	}
	if (path->at_call.kind == PATH_UNKNOWN ||
	    (sp.kind == PATH_SUM && sp.number == path->at_call.number && sp.offset > path->at_call.offset))
		path->at_call = sp;
	for (int number = 0; number < REGISTER_NUMBERS; number++)
		if (registers_set_of(number) == REGISTER_OTHERS)
			path->registers[number] = unknown;
}

static struct path_value sum(const struct code_path *path, unsigned int op, const cs_x86_op *to,
			     const cs_x86_op *from)
{
	if (from->type != X86_OP_IMM || to->type != X86_OP_REG || from->imm == INT64_MIN)
		return unknown;
	return code_path_plus(get(path, to), op == X86_INS_ADD ? from->imm : -from->imm);
}

static void run(struct code_path *path, const struct vm_instruction *instruction)
{
	const cs_x86_op *to = &instruction->operands[0], *from = &instruction->operands[1];
	struct path_value value;

	switch (instruction->id) {
	case X86_INS_MOV: set(path, to, get(path, from)); return;
	case X86_INS_LEA: set(path, to, address_of(path, from)); return;
	case X86_INS_ADD:
	case X86_INS_SUB: set(path, to, sum(path, instruction->id, to, from)); return;
	case X86_INS_PUSH: push(path, get(path, to)); return;
	case X86_INS_PUSHFQ: push(path, unknown); return;
	case X86_INS_POP:
		value = pop(path);
		set(path, to, value);
		return;
	case X86_INS_POPFQ: pop(path); return;
	case X86_INS_LEAVE:
		path->registers[NUMBER_RSP] = path->registers[NUMBER_RBP];
		path->registers[NUMBER_RBP] = pop(path);
		return;
	default: set_written(path, instruction);
	}
}

static enum path_step branch(const cs_x86_op *to, uint64_t *ret_target)
{
	if (to->type != X86_OP_IMM)
		return PATH_ENDS;
	*ret_target = (uint64_t)to->imm;
	return PATH_BRANCHES;
}

enum path_step code_path_step(struct code_path *path, const struct vm_instruction *instruction,
			      uint64_t *ret_target, struct path_value *ret_return)
{
	const cs_x86_op *to = &instruction->operands[0];

	path->pc += instruction->size;
	switch (instruction->id) {
	case X86_INS_RET:
		*ret_return = pop(path);
		if (instruction->operand_count)
			path->registers[NUMBER_RSP] = code_path_plus(path->registers[NUMBER_RSP], to->imm);
		return PATH_RETURNS;
	case X86_INS_JMP:
		if (to->type != X86_OP_IMM)
			return PATH_ENDS;
		path->pc = (uint64_t)to->imm;
		return PATH_ON;
	case X86_INS_JECXZ:
	case X86_INS_JRCXZ: return branch(to, ret_target);
	case X86_INS_LOOP:
	case X86_INS_LOOPE:
	case X86_INS_LOOPNE: path->registers[NUMBER_RCX] = unknown; return branch(to, ret_target);
	case X86_INS_CALL: pass_call(path, to); return PATH_ON;
	case X86_INS_INT3:
	case X86_INS_INT1:
	case X86_INS_UD0:
	case X86_INS_UD2:
	case X86_INS_HLT:
	case X86_INS_LJMP:
	case X86_INS_LCALL:
	case X86_INS_RETF:
	case X86_INS_RETFQ:
	case X86_INS_IRETQ:
	case X86_INS_ENTER: return PATH_ENDS;
	default:
		if (vm_instruction_jumps_by_flags(instruction))
			return branch(to, ret_target);
		if (!instruction->written_known)
			return PATH_ENDS;
		run(path, instruction);
		return PATH_ON;
	}
}
