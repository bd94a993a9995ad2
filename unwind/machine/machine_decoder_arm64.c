/* SPDX-License-Identifier: MIT */
#include "unwind/machine/machine_decoder.h"

cs_err machine_decoder_open_capstone(csh *ret_capstone)
{
	return cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, ret_capstone);
}

size_t machine_decoder_step(void)
{
	return 4;
}

bool machine_decoder_returns(const struct machine_decoder *decoder)
{
	return decoder->insn->id == ARM64_INS_RET;
}

bool machine_decoder_ends(const struct machine_decoder *decoder)
{
	const cs_insn *insn = decoder->insn;

	return (insn->id == ARM64_INS_B && insn->detail->arm64.cc == ARM64_CC_INVALID) ||
	       insn->id == ARM64_INS_BR || insn->id == ARM64_INS_RET;
}

/* The target is the last operand: of cbz and tbz, others come first. */
bool machine_decoder_target(const struct machine_decoder *decoder, uint64_t *ret_target)
{
	const cs_arm64 *arm64 = &decoder->insn->detail->arm64;

	if ((!machine_decoder_jumps(decoder) &&
	     !cs_insn_group(decoder->capstone, decoder->insn, CS_GRP_CALL)) ||
	    arm64->op_count == 0 || arm64->operands[arm64->op_count - 1].type != ARM64_OP_IMM)
		return false;
	*ret_target = (uint64_t)arm64->operands[arm64->op_count - 1].imm;
	return true;
}

bool machine_decoder_keeps(unsigned int reg)
{
	return (reg >= ARM64_REG_X19 && reg <= ARM64_REG_X28) ||
	       (reg >= ARM64_REG_W19 && reg <= ARM64_REG_W30) || reg == ARM64_REG_X29 ||
	       reg == ARM64_REG_X30 || reg == ARM64_REG_SP || reg == ARM64_REG_WSP;
}
