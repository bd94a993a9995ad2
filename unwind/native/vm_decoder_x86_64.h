/* SPDX-License-Identifier: MIT */
/* vm_decoder_x86_64: what vm_decoder knows of an instruction of x86-64. */
#ifndef LJSPY_VM_DECODER_X86_64_H
#define LJSPY_VM_DECODER_X86_64_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/native/vm_decoder.h"

enum {
	VM_INSTRUCTION_BYTES_MAX = 15,
	VM_OPERANDS_MAX = 2,	/* of those that are looked at; imul may have three */
	VM_WRITTEN_MAX = 8,
	/* Registers as they are encoded. The VM's BASE is in rdx, PC in rbx. */
	RAX = 0, RCX, RDX, RBX, RSP, RBP, RSI, RDI,
	REGISTER_COUNT = 16,
};

/* What a name stands for. */
struct vm_register_part {
	int index;		/* -1: no general register */
	unsigned int size, shift;	/* bytes, bits */
};

struct vm_register_part vm_register_part(x86_reg reg);

struct vm_instruction {
	uint64_t address;
	unsigned int id;	/* enum x86_insn; X86_INS_INVALID: none */
	uint8_t size;		/* bytes of it */
	uint8_t fetched;	/* bytes that it was told from */
	uint8_t bytes[VM_INSTRUCTION_BYTES_MAX];
	uint8_t operand_count;
	cs_x86_op operands[VM_OPERANDS_MAX];
	bool written_known;	/* these are all registers that it writes */
	uint8_t written_count;
	uint16_t written[VM_WRITTEN_MAX];	/* enum x86_reg */
};

/*
 * The instruction at the beginning of up to VM_INSTRUCTION_BYTES_MAX bytes from
 * address, or NULL if there is none. Valid until the next call.
 */
const struct vm_instruction *vm_decoder_decode(struct vm_decoder *decoder, uint64_t address,
					       const uint8_t *bytes, size_t length);

#endif
