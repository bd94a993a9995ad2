/* SPDX-License-Identifier: MIT */
#include "unwind/vm/vm_machine.h"

#include "unwind/native/vm_decoder_x86_64.h"
#include "unwind/vm/vm_machine_parts.h"

enum {
	WORD = 8,
	FLAG_CARRY = 1 << 0,
	FLAG_ZERO = 1 << 6,
	FLAG_SIGN = 1 << 7,
	FLAG_OVERFLOW = 1 << 11,
};

/*---- Registers ----*/

static struct vm_value get_register(const struct vm_machine *machine, x86_reg reg)
{
	struct register_part part = register_part(reg);
	struct vm_value value = { 0 };

	if (part.index >= 0) {
		value = machine->registers[part.index];
		value.bits = value.bits >> part.shift & vm_machine_mask(part.size);
	}
	return value;
}

static void set_register(struct vm_machine *machine, x86_reg reg, struct vm_value value)
{
	struct register_part part = register_part(reg);
	struct vm_value *whole;

	if (part.index < 0)
		return;
	whole = &machine->registers[part.index];
	if (part.size >= 4) {
		*whole = (struct vm_value){ value.bits & vm_machine_mask(part.size), value.known };
		return;
	}
	whole->bits = (whole->bits & ~(vm_machine_mask(part.size) << part.shift)) |
		      (value.bits & vm_machine_mask(part.size)) << part.shift;
	whole->known = whole->known && value.known;
}

/*---- Memory ----*/

static bool push(struct vm_machine *machine, struct vm_value value)
{
	machine->registers[RSP].bits -= WORD;
	return vm_machine_store(machine, machine->registers[RSP], WORD, value);
}

static struct vm_value pop(struct vm_machine *machine)
{
	struct vm_value value = vm_machine_load(machine, machine->registers[RSP], WORD);

	machine->registers[RSP].bits += WORD;
	return value;
}

/*---- Operands ----*/

static struct vm_value add(struct vm_value a, struct vm_value b)
{
	return (struct vm_value){ a.bits + b.bits, a.known && b.known };
}

static struct vm_value address_of(const struct vm_machine *machine, const cs_x86_op *operand)
{
	const x86_op_mem *mem = &operand->mem;
	struct vm_value address = { (uint64_t)mem->disp, mem->segment == X86_REG_INVALID };

	if (mem->base == X86_REG_RIP)
		address.bits += machine->instruction->address + machine->instruction->size;
	else if (mem->base != X86_REG_INVALID)
		address = add(address, get_register(machine, mem->base));
	if (mem->index != X86_REG_INVALID) {
		struct vm_value index = get_register(machine, mem->index);

		index.bits *= (uint64_t)mem->scale;
		address = add(address, index);
	}
	/* GC32 code addresses the Lua stack by 32-bit registers. */
	if (mem->base != X86_REG_INVALID && mem->base != X86_REG_RIP && register_part(mem->base).size == 4)
		address.bits &= UINT32_MAX;
	return address;
}

static struct vm_value get(struct vm_machine *machine, const cs_x86_op *operand)
{
	switch (operand->type) {
	case X86_OP_REG: return get_register(machine, operand->reg);
	case X86_OP_IMM: return (struct vm_value){ (uint64_t)operand->imm, true };
	case X86_OP_MEM: return vm_machine_load(machine, address_of(machine, operand), operand->size);
	case X86_OP_INVALID: break;
	}
	return (struct vm_value){ 0 };
}

static bool set(struct vm_machine *machine, const cs_x86_op *operand, struct vm_value value)
{
	if (operand->type == X86_OP_MEM)
		return vm_machine_store(machine, address_of(machine, operand), operand->size, value);
	set_register(machine, operand->reg, value);
	return true;
}

/*---- Arithmetic ----*/

/* A shift by nothing leaves the flags as they are. */
static bool is_shift(unsigned int op)
{
	return op == X86_INS_SHL || op == X86_INS_SHR || op == X86_INS_SAR;
}

static struct vm_value calculate(struct vm_machine *machine, unsigned int op, struct vm_value a,
				 struct vm_value b, unsigned int size)
{
	struct vm_value result = { 0, a.known && b.known };
	struct vm_flags flags = { .known = result.known };
	unsigned int count = (unsigned int)b.bits & (size == 8 ? 63 : 31);

	switch (op) {
	case X86_INS_ADD:
		result.bits = (a.bits + b.bits) & vm_machine_mask(size);
		flags.carry = result.bits < (a.bits & vm_machine_mask(size));
		flags.overflow = vm_value_top_bit(~(a.bits ^ b.bits) & (a.bits ^ result.bits), size);
		break;
	case X86_INS_SUB:
	case X86_INS_CMP:
		result.bits = (a.bits - b.bits) & vm_machine_mask(size);
		flags.carry = (a.bits & vm_machine_mask(size)) < (b.bits & vm_machine_mask(size));
		flags.overflow = vm_value_top_bit((a.bits ^ b.bits) & (a.bits ^ result.bits), size);
		break;
	case X86_INS_AND:
	case X86_INS_TEST: result.bits = a.bits & b.bits & vm_machine_mask(size); break;
	case X86_INS_OR: result.bits = (a.bits | b.bits) & vm_machine_mask(size); break;
	case X86_INS_XOR: result.bits = (a.bits ^ b.bits) & vm_machine_mask(size); break;
	case X86_INS_SHL:
		result.bits = a.bits << count & vm_machine_mask(size);
		flags.carry = count && count <= size * 8 && (a.bits >> (size * 8 - count) & 1);
		break;
	case X86_INS_SHR:
		result.bits = a.bits >> count;
		flags.carry = count && (a.bits >> (count - 1) & 1);
		break;
	case X86_INS_SAR:
		a.bits = vm_value_sign_extended(a.bits, size);
		result.bits = (uint64_t)((int64_t)a.bits >> count) & vm_machine_mask(size);
		flags.carry = count && ((int64_t)a.bits >> (count - 1) & 1);
		break;
	default:
		result.known = false;
		flags.known = false;
		break;
	}
	flags.zero = result.bits == 0;
	flags.sign = vm_value_top_bit(result.bits, size);
	if (!is_shift(op) || !b.known || count)
		machine->flags = flags;
	return result;
}

static bool run_arithmetic(struct vm_machine *machine, const struct vm_instruction *instruction)
{
	const cs_x86_op *to = &instruction->operands[0], *from = &instruction->operands[1];
	struct vm_value a = get(machine, to), result, b = { 1, true };

	if (instruction->operand_count > 1)
		b = get(machine, from);
	/* capstone sign-extends immediates. xor of a register with itself is known to be 0. */
	if (machine->instruction->id == X86_INS_XOR && to->type == X86_OP_REG && from->type == X86_OP_REG &&
	    to->reg == from->reg)
		a = b = (struct vm_value){ 0, true };
	result = calculate(machine, machine->instruction->id, a, b, to->size);
	if (machine->instruction->id == X86_INS_CMP || machine->instruction->id == X86_INS_TEST)
		return true;
	return set(machine, to, result);
}

static bool is_met(const struct vm_machine *machine, unsigned int id, bool *ret_known)
{
	const struct vm_flags *f = &machine->flags;

	*ret_known = f->known;
	switch (id) {
	case X86_INS_JO: return f->overflow;
	case X86_INS_JNO: return !f->overflow;
	case X86_INS_JB:
	case X86_INS_CMOVB: return f->carry;
	case X86_INS_JAE:
	case X86_INS_CMOVAE: return !f->carry;
	case X86_INS_JE:
	case X86_INS_CMOVE: return f->zero;
	case X86_INS_JNE:
	case X86_INS_CMOVNE: return !f->zero;
	case X86_INS_JBE:
	case X86_INS_CMOVBE: return f->carry || f->zero;
	case X86_INS_JA:
	case X86_INS_CMOVA: return !f->carry && !f->zero;
	case X86_INS_JS:
	case X86_INS_CMOVS: return f->sign;
	case X86_INS_JNS:
	case X86_INS_CMOVNS: return !f->sign;
	case X86_INS_JL:
	case X86_INS_CMOVL: return f->sign != f->overflow;
	case X86_INS_JGE:
	case X86_INS_CMOVGE: return f->sign == f->overflow;
	case X86_INS_JLE:
	case X86_INS_CMOVLE: return f->zero || f->sign != f->overflow;
	case X86_INS_JG:
	case X86_INS_CMOVG: return !f->zero && f->sign == f->overflow;
	default: *ret_known = false; return false;
	}
}

/*---- Instructions ----*/

static bool is_dispatch(const cs_x86_op *operand)
{
	return operand->type == X86_OP_MEM && operand->mem.index != X86_REG_INVALID &&
	       (operand->mem.base == X86_REG_R14 || operand->mem.base == X86_REG_R14D);
}

static enum vm_progress jump_to(struct vm_machine *machine, struct vm_value target)
{
	if (vm_machine_in_vm(machine, machine->instruction->address) &&
	    !(target.known && vm_machine_in_vm(machine, target.bits))) {
		machine->pc = machine->instruction->address;
		return VM_PROGRESS_JUMP_OUT;
	}
	if (!target.known)
		return VM_PROGRESS_STUCK;
	if (!vm_machine_in_vm(machine, target.bits)) {
		const struct trace *next = machine->trace ? traces_find(machine->traces, target.bits) : NULL;

		if (machine->trace && !next)
			return VM_PROGRESS_STUCK;
		if (next && next->mcode != target.bits)
			return VM_PROGRESS_STUCK;
		machine->pc = target.bits;
		return next ? VM_PROGRESS_LINKED : VM_PROGRESS_ON;
	}
	machine->pc = target.bits;
	return VM_PROGRESS_ON;
}

static enum vm_progress run_jump(struct vm_machine *machine, const cs_x86_op *to)
{
	if (is_dispatch(to)) {
		machine->pc = machine->instruction->address;
		return VM_PROGRESS_DISPATCH;
	}
	return jump_to(machine, get(machine, to));
}

static enum vm_progress run_call(struct vm_machine *machine, const cs_x86_op *to)
{
	struct vm_value target = get(machine, to);

	if (!vm_machine_in_vm(machine, machine->pc))
		return VM_PROGRESS_STUCK;
	if (!target.known || !vm_machine_in_vm(machine, target.bits))
		return VM_PROGRESS_CALL_OUT;
	if (!push(machine, (struct vm_value){ machine->pc, true }))
		return VM_PROGRESS_STUCK;
	machine->pc = target.bits;
	return VM_PROGRESS_ON;
}

static enum vm_progress run_return(struct vm_machine *machine)
{
	struct vm_value target;

	/* Traces and stubs do not return, so this is foreign code. */
	if (!vm_machine_in_vm(machine, machine->pc))
		return VM_PROGRESS_STUCK;
	target = pop(machine);
	if (!target.known)
		return VM_PROGRESS_STUCK;
	machine->pc = target.bits;
	return vm_machine_in_vm(machine, target.bits) ? VM_PROGRESS_ON : VM_PROGRESS_RETURNED;
}

static enum vm_progress run_branch(struct vm_machine *machine, const cs_x86_op *to)
{
	bool known, taken = is_met(machine, machine->instruction->id, &known);

	/* Of a trace, the machine runs only the last stretch, which leads to one place. */
	if (!vm_machine_in_vm(machine, machine->pc))
		return VM_PROGRESS_STUCK;
	machine->guessed |= !known;
	if (known && taken)
		machine->pc = (uint64_t)to->imm;
	return vm_machine_in_vm(machine, machine->pc) ? VM_PROGRESS_ON : VM_PROGRESS_STUCK;
}

/* Any other instruction, mostly floating point: all that it writes becomes unknown. */
static bool run_other(struct vm_machine *machine, const struct vm_instruction *instruction)
{
	if (!instruction->written_known)
		return false;
	for (uint8_t i = 0; i < instruction->written_count; i++) {
		if (instruction->written[i] == X86_REG_EFLAGS)
			machine->flags.known = false;
		else
			set_register(machine, (x86_reg)instruction->written[i], (struct vm_value){ 0 });
	}
	if (instruction->operand_count && instruction->operands[0].type == X86_OP_MEM &&
	    instruction->operands[0].access & CS_AC_WRITE)
		return set(machine, &instruction->operands[0], (struct vm_value){ 0 });
	return true;
}

static bool run_move(struct vm_machine *machine, const struct vm_instruction *instruction)
{
	const cs_x86_op *to = &instruction->operands[0], *from = &instruction->operands[1];
	struct vm_value value, other;
	bool known;

	switch (machine->instruction->id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVZX: return set(machine, to, get(machine, from));
	case X86_INS_MOVSX:
	case X86_INS_MOVSXD:
		value = get(machine, from);
		value.bits = vm_value_sign_extended(value.bits, from->size);
		return set(machine, to, value);
	case X86_INS_LEA: return set(machine, to, address_of(machine, from));
	case X86_INS_CDQE:
		machine->registers[RAX].bits = vm_value_sign_extended(machine->registers[RAX].bits, 4);
		return true;
	case X86_INS_NOT:
		value = get(machine, to);
		value.bits = ~value.bits;
		return set(machine, to, value);
	case X86_INS_NEG:
		value = calculate(machine, X86_INS_SUB, (struct vm_value){ 0, true }, get(machine, to),
				  to->size);
		return set(machine, to, value);
	case X86_INS_XCHG:
		value = get(machine, to);
		other = get(machine, from);
		return set(machine, to, other) && set(machine, from, value);
	case X86_INS_PUSH: return push(machine, get(machine, to));
	case X86_INS_POP: value = pop(machine); return set(machine, to, value);
	default: /* cmovcc */
		if (!is_met(machine, machine->instruction->id, &known))
			value = known ? get(machine, to) : (struct vm_value){ 0 };
		else
			value = known ? get(machine, from) : (struct vm_value){ 0 };
		return set(machine, to, value);
	}
}

static enum vm_progress run_instruction(struct vm_machine *machine)
{
	const struct vm_instruction *instruction = machine->instruction;
	bool followed;

	switch (machine->instruction->id) {
	case X86_INS_JMP: return run_jump(machine, &instruction->operands[0]);
	case X86_INS_CALL: return run_call(machine, &instruction->operands[0]);
	case X86_INS_RET: return run_return(machine);
	case X86_INS_ADD:
	case X86_INS_SUB:
	case X86_INS_CMP:
	case X86_INS_AND:
	case X86_INS_TEST:
	case X86_INS_OR:
	case X86_INS_XOR:
	case X86_INS_SHL:
	case X86_INS_SHR:
	case X86_INS_SAR: followed = run_arithmetic(machine, instruction); break;
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVZX:
	case X86_INS_MOVSX:
	case X86_INS_MOVSXD:
	case X86_INS_LEA:
	case X86_INS_CDQE:
	case X86_INS_NOT:
	case X86_INS_NEG:
	case X86_INS_XCHG:
	case X86_INS_PUSH:
	case X86_INS_POP:
	case X86_INS_CMOVB:
	case X86_INS_CMOVAE:
	case X86_INS_CMOVE:
	case X86_INS_CMOVNE:
	case X86_INS_CMOVBE:
	case X86_INS_CMOVA:
	case X86_INS_CMOVS:
	case X86_INS_CMOVNS:
	case X86_INS_CMOVL:
	case X86_INS_CMOVGE:
	case X86_INS_CMOVLE:
	case X86_INS_CMOVG: followed = run_move(machine, instruction); break;
	default:
		if (vm_instruction_jumps_by_flags(instruction))
			return run_branch(machine, &instruction->operands[0]);
		followed = run_other(machine, instruction);
		break;
	}
	return followed && machine->registers[RSP].known ? VM_PROGRESS_ON : VM_PROGRESS_STUCK;
}

enum vm_progress vm_machine_run_instruction(struct vm_machine *machine)
{
	uint64_t pc = machine->registers[RBX].bits;
	enum vm_progress progress = run_instruction(machine);

	if (machine->registers[RBX].bits != pc && machine->instruction->id == X86_INS_MOV)
		machine->pc_set_at = machine->steps;
	return progress;
}

/*---- Before and after ----*/

void vm_machine_load_registers(struct vm_machine *machine, const struct registers *registers)
{
	struct registers copy = *registers;

	machine->pc = copy.pc;
	for (int i = 0; i < REGISTER_COUNT; i++)
		machine->registers[i] = (struct vm_value){ *registers_locate(&copy, register_dwarf_number(i)),
							   true };
	machine->flags = (struct vm_flags){
		.zero = copy.flags & FLAG_ZERO,
		.sign = copy.flags & FLAG_SIGN,
		.carry = copy.flags & FLAG_CARRY,
		.overflow = copy.flags & FLAG_OVERFLOW,
		.known = true,
	};
}

void vm_machine_take_result(struct vm_machine *machine, uint64_t result)
{
	/* System V ABI for x86-64, figure 3.4 */
	static const int lost[] = { RCX, RDX, RSI, RDI, R8, R9, R10, R11 };

	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
		machine->registers[lost[i]] = (struct vm_value){ 0 };
	machine->registers[RAX] = (struct vm_value){ result, true };
	machine->flags.known = false;
}

struct vm_value vm_machine_result(const struct vm_machine *machine)
{
	return machine->registers[RAX];
}

void vm_machine_save_registers(const struct vm_machine *machine, struct registers *ret_registers)
{
	const struct vm_value *from = machine->registers;
	struct registers r = { .call_number = UINT64_MAX, .pc = machine->pc };

	for (int i = 0; i < REGISTER_COUNT; i++) {
		int number = register_dwarf_number(i);

		*registers_locate(&r, number) = from[i].bits;
		if (!from[i].known)
			r.unknown |= registers_set_of(number);
	}
	*ret_registers = r;
}
