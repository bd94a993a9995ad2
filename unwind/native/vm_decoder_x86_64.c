/* SPDX-License-Identifier: MIT */
#include "unwind/native/vm_decoder_x86_64.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/machine/evex_x86_64.h"
#include "unwind/machine/machine_decoder.h"

/* Enough for all paths through the VM in most programs; beyond that, instructions replace each other. */
enum { PLACES = 1024 };

struct vm_decoder {
	struct machine_decoder machine;
	struct vm_instruction places[PLACES];
};

struct vm_decoder *vm_decoder_new(void)
{
	struct vm_decoder *decoder = calloc(1, sizeof(*decoder));

	if (!decoder)
		return NULL;
	if (machine_decoder_open(&decoder->machine))
		return decoder;
	free(decoder);
	return NULL;
}

void vm_decoder_free(struct vm_decoder *decoder)
{
	if (!decoder)
		return;
	machine_decoder_close(&decoder->machine);
	free(decoder);
}

static bool is_followed(x86_reg reg)
{
	return reg == X86_REG_EFLAGS || register_part(reg).index >= 0;
}

/* Of vector registers vzeroupper alone writes more than there is room for, and nobody asks for them. */
static void note_written(const struct vm_decoder *decoder, struct vm_instruction *instruction)
{
	cs_regs read, written;
	uint8_t read_count, written_count;

	if (cs_regs_access(decoder->machine.capstone, decoder->machine.insn, read, &read_count, written,
			   &written_count) != CS_ERR_OK)
		return;
	for (uint8_t i = 0; i < written_count; i++) {
		if (!is_followed((x86_reg)written[i]))
			continue;
		if (instruction->written_count == VM_WRITTEN_MAX)
			return;
		instruction->written[instruction->written_count++] = written[i];
	}
	instruction->written_known = true;
}

static const x86_reg whole_registers[REGISTER_COUNT] = {
	X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RBX, X86_REG_RSP, X86_REG_RBP,
	X86_REG_RSI, X86_REG_RDI, X86_REG_R8,  X86_REG_R9,  X86_REG_R10, X86_REG_R11,
	X86_REG_R12, X86_REG_R13, X86_REG_R14, X86_REG_R15,
};

/* Take an AVX-512 instruction as one of capstone's that moves a vector. It writes what "evex" tells. */
static void take_evex(struct vm_instruction *place, const struct evex *evex)
{
	place->id = X86_INS_VMOVDQU64;
	place->size = evex->size;
	place->written_known = true;
	if (evex->written != EVEX_NO_REGISTER)
		place->written[place->written_count++] = (uint16_t)whole_registers[evex->written];
	if (evex->writes_flags)
		place->written[place->written_count++] = X86_REG_EFLAGS;
	if (!evex->stores)
		return;
	place->operand_count = 1;
	place->operands[0].type = X86_OP_MEM;
	place->operands[0].access = CS_AC_WRITE;
	place->operands[0].size = evex->store_bytes;
	place->operands[0].mem.disp = evex->displacement;
	if (evex->base != EVEX_NO_REGISTER)
		place->operands[0].mem.base = whole_registers[evex->base];
	else
		place->operands[0].mem.segment =
			X86_REG_DS; /* an address that nobody follows, as of any segment */
}

const struct vm_instruction *vm_decoder_decode(struct vm_decoder *decoder, uint64_t address,
					       const uint8_t *bytes, size_t length)
{
	struct vm_instruction *place = &decoder->places[address % PLACES];
	const cs_x86 *x86 = &decoder->machine.insn->detail->x86;
	const uint8_t *code = bytes;
	uint64_t next = address;
	size_t left = length;
	struct evex evex;

	if (length > VM_INSTRUCTION_BYTES_MAX)
		return NULL;
	if (place->id != X86_INS_INVALID && place->address == address && place->fetched == length &&
	    memcmp(place->bytes, bytes, length) == 0)
		return place;
	*place = (struct vm_instruction){ .address = address, .fetched = (uint8_t)length };
	memcpy(place->bytes, bytes, length);
	if (evex_decode(bytes, length, &evex)) {
		take_evex(place, &evex);
		return place;
	}
	if (!machine_decoder_next(&decoder->machine, &code, &left, &next))
		return NULL;
	place->id = decoder->machine.insn->id;
	place->size = (uint8_t)decoder->machine.insn->size;
	place->operand_count = x86->op_count;
	memcpy(place->operands, x86->operands, sizeof(place->operands));
	note_written(decoder, place);
	return place;
}

size_t vm_instruction_size(const struct vm_instruction *instruction)
{
	return instruction->size;
}

bool vm_instruction_is_call(const struct vm_instruction *instruction)
{
	return instruction->id == X86_INS_CALL;
}

bool vm_instruction_is_indirect_jump(const struct vm_instruction *instruction)
{
	return instruction->id == X86_INS_JMP && instruction->operands[0].type != X86_OP_IMM;
}

/* The target of a jump or call, which is its first operand. */
static bool take_target(const struct vm_instruction *instruction, uint64_t *ret_target)
{
	*ret_target = (uint64_t)instruction->operands[0].imm;
	return instruction->operands[0].type == X86_OP_IMM;
}

bool vm_instruction_jumps_to(const struct vm_instruction *instruction, uint64_t *ret_target)
{
	switch (instruction->id) {
	case X86_INS_JMP:
	case X86_INS_JECXZ:
	case X86_INS_JRCXZ:
	case X86_INS_LOOP:
	case X86_INS_LOOPE:
	case X86_INS_LOOPNE: return take_target(instruction, ret_target);
	default: return vm_instruction_jumps_by_flags(instruction) && take_target(instruction, ret_target);
	}
}

bool vm_instruction_calls(const struct vm_instruction *instruction, uint64_t *ret_target)
{
	return vm_instruction_is_call(instruction) && take_target(instruction, ret_target);
}

bool vm_instruction_jumps_by_flags(const struct vm_instruction *instruction)
{
	switch (instruction->id) {
	case X86_INS_JO:
	case X86_INS_JNO:
	case X86_INS_JB:
	case X86_INS_JAE:
	case X86_INS_JE:
	case X86_INS_JNE:
	case X86_INS_JBE:
	case X86_INS_JA:
	case X86_INS_JS:
	case X86_INS_JNS:
	case X86_INS_JP:
	case X86_INS_JNP:
	case X86_INS_JL:
	case X86_INS_JGE:
	case X86_INS_JLE:
	case X86_INS_JG: return true;
	default: return false;
	}
}
