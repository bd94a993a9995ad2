/* SPDX-License-Identifier: MIT */
#include "unwind/native/vm_decoder_x86_64.h"

#include <stdlib.h>
#include <string.h>

/* Enough for all paths through the VM in most programs; beyond that, instructions replace each other. */
enum { PLACES = 1024 };

struct vm_decoder {
	csh capstone;
	cs_insn *insn;
	struct vm_instruction places[PLACES];
};

struct vm_decoder *vm_decoder_new(void)
{
	struct vm_decoder *decoder = calloc(1, sizeof(*decoder));

	if (!decoder)
		return NULL;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &decoder->capstone) != CS_ERR_OK) {
		free(decoder);
		return NULL;
	}
	cs_option(decoder->capstone, CS_OPT_DETAIL, CS_OPT_ON);
	decoder->insn = cs_malloc(decoder->capstone);
	if (!decoder->insn) {
		vm_decoder_free(decoder);
		return NULL;
	}
	return decoder;
}

void vm_decoder_free(struct vm_decoder *decoder)
{
	if (!decoder)
		return;
	if (decoder->insn)
		cs_free(decoder->insn, 1);
	cs_close(&decoder->capstone);
	free(decoder);
}

static void note_written(const struct vm_decoder *decoder, struct vm_instruction *instruction)
{
	cs_regs read, written;
	uint8_t read_count, written_count;

	if (cs_regs_access(decoder->capstone, decoder->insn, read, &read_count, written, &written_count) !=
		    CS_ERR_OK ||
	    written_count > VM_WRITTEN_MAX)
		return;
	instruction->written_known = true;
	instruction->written_count = written_count;
	memcpy(instruction->written, written, written_count * sizeof(written[0]));
}

const struct vm_instruction *vm_decoder_decode(struct vm_decoder *decoder, uint64_t address,
					       const uint8_t *bytes, size_t length)
{
	struct vm_instruction *place = &decoder->places[address % PLACES];
	const cs_x86 *x86 = &decoder->insn->detail->x86;
	const uint8_t *code = bytes;
	uint64_t next = address;
	size_t left = length;

	if (length > VM_INSTRUCTION_BYTES_MAX)
		return NULL;
	if (place->id != X86_INS_INVALID && place->address == address && place->fetched == length &&
	    memcmp(place->bytes, bytes, length) == 0)
		return place;
	*place = (struct vm_instruction){ .address = address, .fetched = (uint8_t)length };
	if (!cs_disasm_iter(decoder->capstone, &code, &left, &next, decoder->insn))
		return NULL;
	place->id = decoder->insn->id;
	place->size = (uint8_t)decoder->insn->size;
	place->operand_count = x86->op_count;
	memcpy(place->bytes, bytes, length);
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
