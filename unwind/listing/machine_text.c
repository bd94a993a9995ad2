/* SPDX-License-Identifier: MIT */
#include "unwind/listing/machine_text.h"

#include <stdio.h>

bool machine_text_open(csh *ret_decoder)
{
	if (machine_text_open_capstone(ret_decoder) != CS_ERR_OK)
		return false;
	cs_option(*ret_decoder, CS_OPT_DETAIL, CS_OPT_ON);
	return true;
}

void machine_text_next(csh decoder, const uint8_t *bytes, size_t size, uint64_t address,
		       struct machine_instruction_text *ret_instruction)
{
	cs_insn *instruction = NULL;
	size_t count = cs_disasm(decoder, bytes, size, address, 1, &instruction);

	if (count == 0) {
		*ret_instruction = (struct machine_instruction_text){ .length = 1 };
		snprintf(ret_instruction->text, MACHINE_TEXT_SIZE, "%-7s 0x%02x", ".byte", bytes[0]);
		return;
	}
	*ret_instruction = (struct machine_instruction_text){ .length = instruction->size };
	snprintf(ret_instruction->text, MACHINE_TEXT_SIZE, "%-7s %s", instruction->mnemonic,
		 instruction->op_str);
	ret_instruction->has_target = machine_text_target(decoder, instruction, &ret_instruction->target);
	cs_free(instruction, count);
}
