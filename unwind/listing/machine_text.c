/* SPDX-License-Identifier: MIT */
#include "unwind/listing/machine_text.h"

#include <stdio.h>

void machine_text_next(struct machine_decoder *decoder, const uint8_t *bytes, size_t size, uint64_t address,
		       struct machine_instruction_text *ret_instruction)
{
	const cs_insn *insn = decoder->insn;

	if (!machine_decoder_next(decoder, &bytes, &size, &address)) {
		*ret_instruction = (struct machine_instruction_text){ .length = 1 };
		snprintf(ret_instruction->text, MACHINE_TEXT_SIZE, "%-7s 0x%02x", ".byte", bytes[0]);
		return;
	}
	*ret_instruction = (struct machine_instruction_text){ .length = insn->size };
	snprintf(ret_instruction->text, MACHINE_TEXT_SIZE, "%-7s %s", insn->mnemonic, insn->op_str);
	ret_instruction->has_target = machine_decoder_target(decoder, &ret_instruction->target);
}
