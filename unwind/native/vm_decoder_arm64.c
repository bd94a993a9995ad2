/* SPDX-License-Identifier: MIT */
#include "unwind/native/vm_decoder_arm64.h"

#include <stdlib.h>
#include <string.h>

struct vm_decoder {
	struct vm_instruction last;
};

struct vm_decoder *vm_decoder_new(void)
{
	return calloc(1, sizeof(struct vm_decoder));
}

void vm_decoder_free(struct vm_decoder *decoder)
{
	free(decoder);
}

/* Every word may be an instruction: whoever looks at it says which ones it knows. */
const struct vm_instruction *vm_decoder_decode(struct vm_decoder *decoder, uint64_t address,
					       const uint8_t *bytes, size_t length)
{
	if (length < INSTRUCTION_BYTES || address % INSTRUCTION_BYTES)
		return NULL;
	decoder->last.address = address;
	memcpy(&decoder->last.word, bytes, sizeof(decoder->last.word));
	return &decoder->last;
}

size_t vm_instruction_size(const struct vm_instruction *instruction)
{
	(void)instruction;
	return INSTRUCTION_BYTES;
}

bool vm_instruction_is_call(const struct vm_instruction *instruction)
{
	return is_call(instruction->word) || is_call_register(instruction->word);
}

bool vm_instruction_is_indirect_jump(const struct vm_instruction *instruction)
{
	return is_jump_register(instruction->word);
}

bool vm_instruction_jumps_to(const struct vm_instruction *instruction, uint64_t *ret_target)
{
	uint32_t word = instruction->word;

	*ret_target = instruction_target(instruction);
	return is_branch(word) || is_conditional(word) || is_compare_branch(word) || is_test_branch(word);
}

bool vm_instruction_calls(const struct vm_instruction *instruction, uint64_t *ret_target)
{
	*ret_target = instruction_target(instruction);
	return is_call(instruction->word);
}

uint64_t instruction_target(const struct vm_instruction *instruction)
{
	uint32_t word = instruction->word;
	int64_t distance;

	if (is_branch(word) || is_call(word))
		distance = signed_bits_of(word, 0, 26);
	else if (is_test_branch(word))
		distance = signed_bits_of(word, 5, 14);
	else
		distance = signed_bits_of(word, 5, 19);
	return instruction->address + (uint64_t)distance * INSTRUCTION_BYTES;
}

int64_t instruction_addend(uint32_t word)
{
	int64_t value = (int64_t)bits_of(word, 10, 12) << (bits_of(word, 22, 1) ? 12 : 0);

	return bits_of(word, 30, 1) ? -value : value;
}

/* How many bytes one register of a pair has, as a shift. */
static unsigned int pair_scale(uint32_t word)
{
	unsigned int size = bits_of(word, 30, 2);

	return bits_of(word, 26, 1) ? 2 + size : 2 + (size >> 1);
}

bool instruction_writes_back(uint32_t word, int64_t *ret_offset, bool *ret_is_before)
{
	enum { POST = 1, PRE = 3 };
	unsigned int mode;

	if (is_pair(word)) {
		mode = bits_of(word, 23, 2);
		*ret_offset = signed_bits_of(word, 15, 7) * (INT64_C(1) << pair_scale(word));
	} else if (is_load_unscaled(word)) {
		mode = bits_of(word, 10, 2);
		*ret_offset = signed_bits_of(word, 12, 9);
	} else {
		return false;
	}
	*ret_is_before = mode == PRE;
	return mode == POST || mode == PRE;
}
