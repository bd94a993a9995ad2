/* SPDX-License-Identifier: MIT */
#include "unwind/listing/machine_text.h"

cs_err machine_text_open_capstone(csh *ret_decoder)
{
	return cs_open(CS_ARCH_X86, CS_MODE_64, ret_decoder);
}

bool machine_text_target(csh decoder, const cs_insn *instruction, uint64_t *ret_target)
{
	const cs_x86 *x86 = &instruction->detail->x86;

	if ((!cs_insn_group(decoder, instruction, CS_GRP_JUMP) &&
	     !cs_insn_group(decoder, instruction, CS_GRP_CALL)) ||
	    x86->op_count != 1 || x86->operands[0].type != X86_OP_IMM)
		return false;
	*ret_target = (uint64_t)x86->operands[0].imm;
	return true;
}

const char *machine_text_register(unsigned reg)
{
	static const char *const names[] = {
		"rax",  "rcx",  "rdx",  "rbx",  "rsp",   "rbp",   "rsi",   "rdi",   "r8",    "r9",    "r10",
		"r11",  "r12",  "r13",  "r14",  "r15",   "xmm0",  "xmm1",  "xmm2",  "xmm3",  "xmm4",  "xmm5",
		"xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
	};

	return reg < sizeof(names) / sizeof(*names) ? names[reg] : NULL;
}
