/* SPDX-License-Identifier: MIT */
#include "unwind/machine/machine_decoder.h"

#include "unwind/elf/register_part_x86_64.h"

cs_err machine_decoder_open_capstone(csh *ret_capstone)
{
	return cs_open(CS_ARCH_X86, CS_MODE_64, ret_capstone);
}

size_t machine_decoder_step(void)
{
	return 1;
}

bool machine_decoder_returns(const struct machine_decoder *decoder)
{
	return decoder->insn->id == X86_INS_RET;
}

bool machine_decoder_ends(const struct machine_decoder *decoder)
{
	return decoder->insn->id == X86_INS_JMP || decoder->insn->id == X86_INS_RET;
}

bool machine_decoder_target(const struct machine_decoder *decoder, uint64_t *ret_target)
{
	const cs_x86 *x86 = &decoder->insn->detail->x86;

	if ((!machine_decoder_jumps(decoder) &&
	     !cs_insn_group(decoder->capstone, decoder->insn, CS_GRP_CALL)) ||
	    x86->op_count != 1 || x86->operands[0].type != X86_OP_IMM)
		return false;
	*ret_target = (uint64_t)x86->operands[0].imm;
	return true;
}

bool machine_decoder_keeps(unsigned int reg)
{
	int index = register_part((x86_reg)reg).index;

	return index == RSP || index == RBP || index == RBX || index >= R12;
}
