/* SPDX-License-Identifier: MIT */
/* vm_decoder_x86_64: a decoded x86-64 instruction. */
#ifndef LJSPY_VM_DECODER_X86_64_H
#define LJSPY_VM_DECODER_X86_64_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stdint.h>

#include "unwind/elf/register_part_x86_64.h"
#include "unwind/native/vm_decoder.h"

enum {
	VM_OPERANDS_MAX = 2, /* operands kept; imul may have three */
	VM_WRITTEN_MAX = 8,
};

struct vm_instruction {
	uint64_t address;
	unsigned int id; /* enum x86_insn; X86_INS_INVALID: none */
	uint8_t size;    /* its length in bytes */
	uint8_t fetched; /* bytes given to the decoder */
	uint8_t bytes[VM_INSTRUCTION_BYTES_MAX];
	uint8_t operand_count;
	cs_x86_op operands[VM_OPERANDS_MAX];
	bool written_known; /* written lists all general registers that it writes, and the flags */
	uint8_t written_count;
	uint16_t written[VM_WRITTEN_MAX]; /* enum x86_reg */
};

/* Does it jump or not by the flags: jcc? */
bool vm_instruction_jumps_by_flags(const struct vm_instruction *instruction);

#endif
